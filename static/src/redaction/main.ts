/** The redaction page: boxes over a picture, `[data-redaction]`. */
import { RedactionEditor } from "./editor";

const root = document.querySelector<HTMLFormElement>("[data-redaction]");
if (root) new RedactionEditor(root);
