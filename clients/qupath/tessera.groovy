/*
 * ROIs of a Tessera portal to and from the image that is open in QuPath 0.5 or 0.6.
 *
 * Run it in the script editor; README.md in this folder says how. The address and the token come from TESSERA_URL and
 * TESSERA_TOKEN or are asked for; the token is kept nowhere.
 */
import static qupath.lib.gui.scripting.QPEx.*

import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.time.Duration

import groovy.transform.Field
import javafx.scene.control.PasswordField
import qupath.fx.dialogs.Dialogs
import qupath.lib.io.GsonTools
import qupath.lib.io.PathIO

@Field final String TITLE = 'Tessera'
@Field final String GET = 'Get ROIs from the portal'
@Field final String SEND = 'Send annotations to the portal'
@Field final String VERSIONS = 'tessera.versions.' // of ROIs as they came, kept with the image's data

/** What the portal, or the person, would not do; the message is for people. */
class Refusal extends Exception {
    Refusal(String message) { super(message) }
}

/** A portal, as the owner of a token sees it. */
class Portal {
    final String url
    final String token
    // It follows no redirect, so the token stays with this host. HTTP/1.1: the portal refuses a body sent with an offer of HTTP/2.
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
        .connectTimeout(Duration.ofSeconds(20)).build()

    Portal(String url, String token) {
        this.url = url
        this.token = token
    }

    byte[] get(String path, Map query) {
        answer(request(path, query).GET())
    }

    byte[] post(String path, Map query, byte[] body) {
        answer(request(path, query)
            .header('Content-Type', 'application/octet-stream')
            .header('Idempotency-Key', UUID.randomUUID().toString())
            .POST(HttpRequest.BodyPublishers.ofByteArray(body)))
    }

    static Map parsed(byte[] json) {
        GsonTools.getInstance().fromJson(new String(json, 'UTF-8'), Map)
    }

    private HttpRequest.Builder request(String path, Map query) {
        String encoded = query.findAll { it.value != null }.collect { name, value -> name + '=' + URLEncoder.encode(value.toString(), 'UTF-8') }.join('&')
        HttpRequest.newBuilder(URI.create(url + '/api/v1/' + path + '?' + encoded))
            .timeout(Duration.ofMinutes(10))
            .header('Authorization', 'Bearer ' + token)
    }

    private byte[] answer(HttpRequest.Builder request) {
        HttpResponse<byte[]> answer
        try {
            answer = http.send(request.build(), HttpResponse.BodyHandlers.ofByteArray())
        } catch (IOException error) {
            throw new Refusal(url + ' does not answer: ' + (error.message ?: error.toString()))
        }
        if (answer.statusCode() >= 200 && answer.statusCode() < 300) {
            return answer.body()
        }
        String why = 'HTTP ' + answer.statusCode()
        if (answer.headers().firstValue('Content-Type').orElse('').contains('json')) {
            def problem = parsed(answer.body())
            why = problem.detail + ' (' + problem.code + ')'
        }
        throw new Refusal(url + ': ' + why)
    }
}

String prompt(String question, String known) {
    def input = Dialogs.showInputDialog(TITLE, question, known)?.trim()
    if (!input) {
        throw new Refusal('Nothing was done.')
    }
    input
}

Portal portalOf() {
    String url = System.getenv('TESSERA_URL') ?: prompt('Address of the portal', 'https://')
    String token = System.getenv('TESSERA_TOKEN')
    if (!token) {
        def field = new PasswordField()
        field.setPromptText('API token (tess_...)')
        if (!Dialogs.showConfirmDialog(TITLE, field) || !field.getText()?.trim()) {
            throw new Refusal('Nothing was done.')
        }
        token = field.getText().trim()
    }
    new Portal(url.replaceAll('/+$', ''), token)
}

/** The canvas that the person names; it has to be as large as the open image. */
Map canvasOf(Portal portal, imageData) {
    def input = prompt('Address of the slide in the viewer, or the id in it', imageData.getProperty('tessera.canvas') ?: '')
    def ids = input =~ /(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/
    if (!ids.find()) {
        throw new Refusal('There is no id of a slide in: ' + input)
    }
    def id = ids.group().toLowerCase()
    def canvas = Portal.parsed(portal.get("canvases/${id}/", [:]))
    def server = imageData.getServer()
    if (canvas.width != server.getWidth() || canvas.height != server.getHeight()) {
        throw new Refusal(String.format('%s has %.0f x %.0f pixels on the portal, the open image %d x %d: ROIs would be misplaced.',
            canvas.name, canvas.width as double, canvas.height as double, server.getWidth(), server.getHeight()))
    }
    imageData.setProperty('tessera.canvas', id)
    canvas
}

/** Id to version of all live ROIs. */
Map versionsNow(Portal portal, Map canvas) {
    def versions = [:]
    def place = null
    while (true) {
        def list = Portal.parsed(portal.get('rois/', [canvas: canvas.id, centroids: 1, page_size: 1000, cursor: place]))
        list.results.each { roi -> versions[roi.id] = roi.version as long }
        if (list.next == null) {
            return versions
        }
        place = URLDecoder.decode((list.next =~ /[?&]cursor=([^&]+)/)[0][1], 'UTF-8')
    }
}

/** Id to version of the ROIs that this image has, as they were when they came or were sent. */
Map versionsKept(imageData, Map canvas) {
    def text = imageData.getProperty(VERSIONS + canvas.id)
    text ? GsonTools.getInstance().fromJson(text, Map).collectEntries { id, version -> [id, version as long] } : [:]
}

void keep(imageData, Map canvas, Map versions) {
    imageData.setProperty(VERSIONS + canvas.id, GsonTools.getInstance().toJson(versionsKept(imageData, canvas) + versions))
}

String idOf(pathObject) {
    pathObject.getID().toString()
}

void getRois(Portal portal, Map canvas, imageData) {
    // Versions first: what is saved between the two requests then counts as changed since.
    def versions = versionsNow(portal, canvas)
    def document = portal.get("canvases/${canvas.id}/roi-file/", [format: 'geojson'])
    def rois = PathIO.readObjectsFromGeoJSON(new ByteArrayInputStream(document))
    def ids = rois.collect { idOf(it) } as Set
    def here = getAllObjects(false).findAll { idOf(it) in ids }
    def replaced = here
    if (here && !Dialogs.showYesNoDialog(TITLE, here.size() + ' of ' + rois.size() + ' ROIs are in this image already. ' +
            'Replace them with those of the portal? What was changed here is lost. "No" only adds the others.')) {
        def known = here.collect { idOf(it) } as Set
        rois = rois.findAll { !(idOf(it) in known) }
        replaced = []
    }
    def hierarchy = imageData.getHierarchy()
    hierarchy.removeObjects(replaced, true)
    hierarchy.addObjects(rois)
    keep(imageData, canvas, versions.subMap(rois.collect { idOf(it) }))
    Dialogs.showPlainMessage(TITLE, canvas.name + ': ' + (rois.size() - replaced.size()) + ' ROIs added, ' +
        replaced.size() + ' replaced, ' + (here.size() - replaced.size()) + ' left as they are here.')
}

String summary(Map report) {
    def lines = [String.format('%.0f annotations: %.0f new, %.0f changed, %.0f back from the trash, %.0f as they are, %.0f refused, %.0f repaired',
        *[report.total, report.created, report.updated, report.restored, report.unchanged, report.refused, report.repaired]*.doubleValue())]
    report.groups.take(10).each { group -> lines << String.format('%s (%.0f): %s', group.status, group.count as double, group.reason) }
    lines.join('\n')
}

void sendAnnotations(Portal portal, Map canvas, imageData) {
    def selected = getSelectedObjects().findAll { it.isAnnotation() }
    def annotations = selected ?: getAnnotationObjects() as List
    if (!annotations) {
        throw new Refusal('This image has no annotations.')
    }
    def kept = versionsKept(imageData, canvas)
    def now = versionsNow(portal, canvas)
    // Changed or deleted on the portal since it came here, or on the portal without ever having come here.
    def (conflicts, sent) = annotations.split { kept[idOf(it)] != now[idOf(it)] }
    String left = conflicts ? '\n' + conflicts.size() + ' left out, changed or deleted on the portal since they came here: ' +
        conflicts.take(10).collect { it.getName() ?: idOf(it) }.join(', ') + '. Get the ROIs again to have those of the portal.' : ''
    if (!sent) {
        throw new Refusal('Nothing is sent.' + left)
    }
    def stream = new ByteArrayOutputStream()
    PathIO.exportObjectsAsGeoJSON(stream, sent, PathIO.GeoJsonExportOptions.FEATURE_COLLECTION)
    def body = stream.toByteArray()
    def report = Portal.parsed(portal.post("canvases/${canvas.id}/roi-file/", [format: 'geojson', dry_run: 1], body))
    if (report.created + report.updated + report.restored == 0) {
        Dialogs.showPlainMessage(TITLE, 'Nothing to send. ' + summary(report) + left)
        return
    }
    if (!Dialogs.showConfirmDialog(TITLE, 'Send to ' + canvas.name + '?\n' + summary(report) + left)) {
        throw new Refusal('Nothing was sent.')
    }
    report = Portal.parsed(portal.post("canvases/${canvas.id}/roi-file/", [format: 'geojson'], body))
    def ids = sent.collect { idOf(it) } as Set
    keep(imageData, canvas, versionsNow(portal, canvas).findAll { id, version -> id in ids })
    Dialogs.showPlainMessage(TITLE, 'Sent. ' + summary(report) + left)
}

try {
    def imageData = getCurrentImageData()
    if (imageData == null) {
        throw new Refusal('Open an image first.')
    }
    def wanted = Dialogs.showChoiceDialog(TITLE, 'ROIs of the open image', [GET, SEND], GET)
    if (wanted != null) {
        def portal = portalOf()
        def canvas = canvasOf(portal, imageData)
        wanted == GET ? getRois(portal, canvas, imageData) : sendAnnotations(portal, canvas, imageData)
    }
} catch (Refusal refusal) {
    Dialogs.showErrorMessage(TITLE, refusal.message)
}
