// Generated from the OpenAPI schema by `npm run types`; do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description Result of a change of many cases. */
        BulkResult: {
            /** @description Ids of the cases that were changed */
            changed: string[];
            problems: components["schemas"]["CaseProblem"][];
            /** @description Number of cases that needed no change */
            unchanged: number;
        };
        /**
         * @description * `hand` - hand
         *     * `tracking` - tracking
         * @enum {string}
         */
        ByEnum: "hand" | "tracking";
        /** @description A canvas as the viewer needs it. Wants ``request`` in its context. */
        Canvas: {
            /** @description Return whether this user may draw. */
            readonly can_annotate: boolean;
            /** @description Return whether this user may accept and reject ROIs. */
            readonly can_review: boolean;
            /** @description Return whether this user may set the pixel size, which the file does not state. */
            readonly can_scale: boolean;
            /** @description Return whether this user may set it: the image has more than 8 bits. */
            readonly can_set_display_range: boolean;
            readonly case: components["schemas"]["CanvasCase"];
            readonly display_range: components["schemas"]["DisplayRange"] | null;
            readonly file_display_range: components["schemas"]["DisplayRange"] | null;
            /** @description Tiles carry the scanner's colour profile */
            has_icc_profile: boolean;
            readonly height: number;
            /** Format: uuid */
            readonly id: string;
            /** @description Somebody in the lab set it */
            is_modality_by_hand: boolean;
            /** @description The pixel size is not in the file; somebody in the lab set it */
            is_scaled_by_hand: boolean;
            kind: components["schemas"]["CanvasKindEnum"];
            readonly levels: components["schemas"]["Level"][];
            modality: components["schemas"]["ModalityEnum"];
            /** Format: double */
            mpp_x: number | null;
            /** Format: double */
            mpp_y: number | null;
            name: string;
            /** @description Stain of a slide; empty if unknown. */
            readonly stain: string;
            /** @description Null if there is none. */
            readonly thumbnail_url: string | null;
            /**
             * @description Template with ``{z}/{x}/{y}``, z 0 the coarsest; null for a video.
             *
             *     It holds no secret: each request sends the session's cookie or the token.
             */
            readonly tile_url: string | null;
            readonly video: components["schemas"]["CanvasVideo"] | null;
            readonly width: number;
        };
        /** @description The case a canvas belongs to. */
        CanvasCase: {
            accession: string;
            /** Format: uuid */
            id: string;
        };
        /**
         * @description * `slide` - Slide
         *     * `still` - Still
         *     * `video` - Video
         *     * `mosaic` - Mosaic
         * @enum {string}
         */
        CanvasKindEnum: "slide" | "still" | "video" | "mosaic";
        /** @description Others' activity on a canvas. */
        CanvasNow: {
            changed: components["schemas"]["RoiChanged"][];
            /** Format: date-time */
            cursor: string;
            /** @description More ROIs changed than are listed; read all of them */
            has_more: boolean;
            people: components["schemas"]["Person"][];
        };
        /** @description Time on a canvas; ``{pts}`` in ``frame_url`` is a PTS of the frame table. */
        CanvasVideo: {
            /** Format: double */
            duration_s: number;
            /** @description Pictures side by side in the filmstrip */
            filmstrip_count: number;
            filmstrip_url: string;
            /** Format: double */
            fps: number;
            frame_count: number;
            frame_url: string;
            frames_url: string;
            /** Format: uuid */
            id: string;
            /** @description Shown mirrored left to right, before the rotation */
            readonly is_mirrored: boolean | null;
            /**
             * Format: double
             * @description Media time is frame time minus this
             */
            media_offset_s: number;
            media_url: string;
            /** @description Clockwise, from stored to displayed: 0, 90, 180 or 270 */
            readonly rotation_deg: number | null;
            /** @description Width to height of a stored pixel, such as 64:45 */
            readonly sample_aspect_ratio: string | null;
            readonly stored_height: number | null;
            readonly stored_width: number | null;
            /** Format: double */
            time_base_s: number;
        };
        /** @description Reason why one case was left as it is. */
        CaseProblem: {
            /** @description Empty if there is no such case */
            accession: string;
            /** Format: uuid */
            case: string;
            code: string;
            detail: string;
        };
        /** @description Stored values shown as black (``low``) and as white (``high``). */
        DisplayRange: {
            /**
             * Format: double
             * @description Below low, large values are dark
             */
            high: number;
            /** Format: double */
            low: number;
        };
        /**
         * @description * `create` - Created
         *     * `update` - Changed
         *     * `delete` - Deleted
         *     * `restore` - Restored
         * @enum {string}
         */
        DoEnum: "create" | "update" | "delete" | "restore";
        /** @description The query is being embedded; repeat the request after the job has succeeded. */
        EmbeddingPending: {
            job: components["schemas"]["Job"];
        };
        /**
         * @description A model that turns ROIs into vectors. Searches use the lab's own encoder or the shared
         *     default.
         */
        Encoder: {
            /**
             * Format: uuid
             * @description The encoder whose vectors it maps
             */
            base: string | null;
            config_hash: string;
            /** Format: int64 */
            dim: number;
            /** Format: uuid */
            readonly id: string;
            /** @default false */
            is_default: boolean;
            /** @description Becomes the default once it has embedded every lab */
            is_next: boolean;
            /** @default histology */
            kind: components["schemas"]["ModalityEnum"];
            /**
             * Format: uuid
             * @description null for all labs
             */
            lab: string | null;
            name: string;
            version: string;
        };
        /** @description Estimated cost of a build. */
        Estimate: {
            /** @description Earlier builds that the rate was measured on */
            builds: number;
            /** @description Frames in the span */
            frames: number;
            /**
             * Format: double
             * @description null before this lab has built a mosaic
             */
            seconds: number | null;
            /** @description Frames that would be used: every step-th of them */
            used: number;
        };
        /**
         * @description * `known` - known
         *     * `mapped` - mapped
         *     * `created` - created
         *     * `none` - none
         *     * `refused` - refused
         * @enum {string}
         */
        FateEnum: "known" | "mapped" | "created" | "none" | "refused";
        /** @description Figures of a region. Densities are decadic, against a white of 255. */
        Figures: {
            /** Format: double */
            area_mm2: number;
            /** @description Nuclei that are 0, 1+, 2+ and 3+; empty without a marker in nuclei */
            bin_counts: number[];
            config_hash: string;
            /** Format: double */
            h_score: number | null;
            /** @description Mean density over the tissue, by stain */
            mean_od: {
                [key: string]: number;
            };
            /** Format: date-time */
            measured_at: string;
            nuclei_missing: string;
            /** Format: double */
            nuclei_per_mm2: number | null;
            /** Format: int64 */
            nucleus_count: number | null;
            /** Format: double */
            positive_area_percent: number | null;
            /** Format: double */
            positive_percent: number | null;
            /** Format: int64 */
            roi_version: number;
            staining: components["schemas"]["StainingEnum"];
            /** @description By which it was measured */
            readonly thresholds: {
                [key: string]: number;
            };
            /** Format: double */
            tissue_mm2: number;
        };
        /** @description A frame that saw the point, and where in the frame. */
        FrameAtPoint: {
            /** Format: double */
            from_centre_px: number;
            /** @description The frame as JPEG. */
            readonly image_url: string;
            index: number;
            /** @description The frame's view on the mosaic */
            outline: [
                number,
                number
            ][];
            pts: number;
            /**
             * Format: double
             * @description Compare within one video
             */
            sharpness: number | null;
            /** Format: double */
            time_s: number;
            /**
             * Format: double
             * @description One standard deviation
             */
            uncertainty_px: number | null;
            /** @description The video at that frame, the point in the middle. */
            readonly viewer_url: string;
            xy_frame: [
                number,
                number
            ];
        };
        /** @description Every frame, in columns of equal length. */
        FrameColumns: {
            component: (number | null)[];
            count: number;
            index: number[];
            /** @description x, y, x, y, ... on the component of the frame; null if it is on none */
            outline: (number[] | null)[];
            pts: number[];
            /** @description Index into `reasons`, counted from 0 */
            reason: number[];
            reasons: components["schemas"]["FrameReason"][];
            /** Format: double */
            time_base_s: number;
        };
        /** @description A frame of a video; ``time_s`` is its presentation time in seconds. */
        FrameOut: {
            index: number;
            pts: number;
            /** Format: double */
            time_s: number;
        };
        /** @description A stretch of the frame table. */
        FramePage: {
            /** @description Frames of the whole video */
            count: number;
            frames: components["schemas"]["TableFrame"][];
            /**
             * Format: uri
             * @description The stretch after this one
             */
            next: string | null;
            start: number;
            /** Format: double */
            time_base_s: number;
        };
        /** @description Reason; ``reason`` of the columns is an index into these. */
        FrameReason: {
            code: string;
            color: string;
            name: string;
        };
        /** @description A frame: index and presentation time name the same one; either may be left out. */
        FrameReferenceRequest: {
            index?: number;
            /** Format: int64 */
            pts?: number;
        };
        /** @description The frames that saw a point, the sharpest first; ``count`` is all that did. */
        FramesAtPoint: {
            count: number;
            results: components["schemas"]["FrameAtPoint"][];
        };
        /**
         * @description GeoJSON in level-0 pixels, x right, y down.
         * @example {
         *       "type": "Polygon",
         *       "coordinates": [
         *         [
         *           [
         *             10,
         *             10
         *           ],
         *           [
         *             90,
         *             10
         *           ],
         *           [
         *             90,
         *             80
         *           ],
         *           [
         *             10,
         *             10
         *           ]
         *         ]
         *       ]
         *     }
         */
        Geometry: components["schemas"]["PolygonGeometry"] | components["schemas"]["MultiPolygonGeometry"] | components["schemas"]["PointGeometry"] | components["schemas"]["MultiPointGeometry"] | components["schemas"]["LineStringGeometry"] | components["schemas"]["MultiLineStringGeometry"];
        /** @description Figures of the fields of a grid together. */
        GridFigures: {
            /**
             * Format: double
             * @description Sum of the nominal areas
             */
            area_mm2: number;
            field_count: number;
            /** @description Fields with figures that are not stale */
            measured_count: number;
            /** Format: double */
            nuclei_per_mm2: number | null;
            /** @description null until nuclei were counted in all fields */
            nucleus_count: number | null;
            /** @description 10 fields, 2.37 mm² */
            text: string;
        };
        /** @description A class of the document, and what its ROIs get. */
        ImportClass: {
            color: string | null;
            count: number;
            fate: components["schemas"]["FateEnum"];
            /**
             * Format: uuid
             * @description null if there is none, or none yet
             */
            label: string | null;
            label_name: string;
            name: string;
            /** @description Why it was refused */
            problem: string;
        };
        /** @description Features with the same reason, except for numbers. */
        ImportGroup: {
            count: number;
            /** @description Positions of the first few, counted from 0 */
            first: number[];
            /** @description The reason given for the first of them */
            reason: string;
            /** @description Kind, name and class of the first few */
            shapes: string[];
            status: components["schemas"]["ImportGroupStatusEnum"];
        };
        /**
         * @description * `refused` - refused
         *     * `repaired` - repaired
         * @enum {string}
         */
        ImportGroupStatusEnum: "refused" | "repaired";
        /** @description Result of one feature. */
        ImportItem: {
            index: number;
            notes: string[];
            /** @description Why it was refused; begins with the shape */
            reason: string;
            /**
             * Format: uuid
             * @description null for a refused feature and for an event
             */
            roi: string | null;
            /** @description Its kind, name and class */
            shape: string;
            status: components["schemas"]["ImportItemStatusEnum"];
        };
        /**
         * @description * `created` - created
         *     * `updated` - updated
         *     * `restored` - restored
         *     * `unchanged` - unchanged
         *     * `refused` - refused
         * @enum {string}
         */
        ImportItemStatusEnum: "created" | "updated" | "restored" | "unchanged" | "refused";
        /**
         * @description * `previewing` - Being previewed
         *     * `previewed` - Previewed
         *     * `importing` - Being imported
         *     * `imported` - Imported
         *     * `undoing` - Being undone
         * @enum {string}
         */
        ImportStageEnum: "previewing" | "previewed" | "importing" | "imported" | "undoing";
        /** @description Number of ROIs and events per result of an undone import. */
        ImportUndone: {
            /** @description Deleted again */
            removed: number;
            /** @description Restored as they were before */
            reverted: number;
            /** @description Left as they are, because somebody changed them since */
            skipped: number;
        };
        /** @description Why an item could not be prepared. */
        ItemError: {
            code: string;
            message: string;
        };
        /**
         * @description * `slide` - slide
         *     * `video` - video
         * @enum {string}
         */
        ItemKindEnum: "slide" | "video";
        /**
         * @description * `preparing` - Preparing
         *     * `ready` - Ready
         *     * `failed` - Failed
         * @enum {string}
         */
        ItemStateEnum: "preparing" | "ready" | "failed";
        /** @description A job, without its traceback. */
        Job: {
            /** Format: int64 */
            attempts: number;
            cancel_requested: boolean;
            /** Format: date-time */
            readonly created_at: string;
            readonly error: components["schemas"]["JobError"] | null;
            /** Format: date-time */
            finished_at: string | null;
            /** Format: uuid */
            readonly id: string;
            kind: string;
            /** Format: int64 */
            max_attempts: number;
            /** @description Why it ended without a result, such as `no tissue` */
            readonly outcome: string;
            phase: string;
            /** @description ``interactive``, ``ingest`` or ``bulk``. */
            readonly priority: string;
            readonly progress: components["schemas"]["JobProgress"];
            result: unknown;
            /**
             * Format: double
             * @description Estimated time left in the current phase of a running job; null while unknown
             */
            readonly seconds_left: number | null;
            /** Format: date-time */
            started_at: string | null;
            state: components["schemas"]["JobStateEnum"];
            /** Format: uuid */
            target_id: string | null;
            /** @description Empty once the target is deleted */
            target_name: string;
            target_type: string;
            /** @description Title of the kind of job. */
            readonly title: string;
            /** @description Its place in the queue; null if it is not waiting, or if thousands are ahead of it */
            readonly wait: components["schemas"]["Wait"] | null;
        };
        /** @description Error of a failed job. */
        JobError: {
            code: string;
            message: string;
        };
        /** @description Progress in the current phase. */
        JobProgress: {
            done: number;
            percent: number;
            /** @description 0 while unknown */
            total: number;
        };
        /**
         * @description * `queued` - Waiting
         *     * `running` - Running
         *     * `succeeded` - Done
         *     * `failed` - Failed
         *     * `cancelled` - Cancelled
         * @enum {string}
         */
        JobStateEnum: "queued" | "running" | "succeeded" | "failed" | "cancelled";
        /** @description An ROI on another frame of its video than its own. */
        KeyFrame: {
            /**
             * @description The next tracking may replace what tracking made
             *
             *     * `hand` - hand
             *     * `tracking` - tracking
             */
            by: components["schemas"]["ByEnum"];
            /**
             * Format: double
             * @description Standard error of a tracked outline
             */
            drift_px: number;
            /** @description null if `outside` */
            geometry: components["schemas"]["Geometry"] | null;
            index: number;
            /** @description The ROI is not visible from this frame to the next key frame */
            outside: boolean;
            pts: number;
            shape: components["schemas"]["ShapeEnum"];
        };
        /** @description An ROI on another frame of its video than its own, as clients send it. */
        KeyFrameInputRequest: {
            /**
             * @description The next tracking may replace what tracking made
             *
             *     * `hand` - hand
             *     * `tracking` - tracking
             */
            by?: components["schemas"]["ByEnum"];
            /**
             * Format: double
             * @description Standard error of a tracked outline
             */
            drift_px?: number;
            /**
             * @description null if `outside`
             * @example {
             *       "type": "Polygon",
             *       "coordinates": [
             *         [
             *           [
             *             10,
             *             10
             *           ],
             *           [
             *             90,
             *             10
             *           ],
             *           [
             *             90,
             *             80
             *           ],
             *           [
             *             10,
             *             10
             *           ]
             *         ]
             *       ]
             *     }
             */
            geometry?: {
                coordinates: unknown[];
                /** @enum {string} */
                type: "Polygon" | "MultiPolygon" | "Point" | "MultiPoint" | "LineString" | "MultiLineString";
            } | null;
            index: number;
            /** @description The ROI is not visible from this frame to the next key frame */
            outside?: boolean;
            /** Format: int64 */
            pts?: number;
            shape?: components["schemas"]["ShapeEnum"];
        };
        /** @description A label. */
        Label: {
            /** @description #rrggbb */
            color: string;
            /** Format: uuid */
            id: string;
            /** @description 1 to 9, or empty */
            key: string;
            /** Format: uuid */
            lab: string;
            /** Format: uuid */
            merged_into: string | null;
            name: string;
            /**
             * Format: uuid
             * @description The label directly above it
             */
            parent: string | null;
            position: number;
            /** @description Not offered for new ROIs; ROIs that have it keep it */
            retired: boolean;
        };
        /** @description Extent of a label merge. */
        LabelMerge: {
            canvases: number;
            cases: number;
            /**
             * Format: uuid
             * @description null for a preview
             */
            id: string | null;
            /** @description How many of these ROIs are locked; they are relabelled too */
            locked: number;
            rois: number;
        };
        /** @description Number of ROIs that an undone merge changed back. */
        LabelMergeUndone: {
            reverted: number;
            /** @description Changed by somebody since then */
            skipped: number;
        };
        /** @description A level of the tile grid. */
        Level: {
            /** Format: double */
            downsample: number;
            height: number;
            tile_height: number;
            tile_width: number;
            width: number;
        };
        LineStringGeometry: {
            coordinates: [
                number,
                number
            ][];
            type: components["schemas"]["LineStringGeometryTypeEnum"];
        };
        /** @enum {string} */
        LineStringGeometryTypeEnum: "LineString";
        /** @description Image of points. */
        MapCanvas: {
            accession: string;
            /** Format: uuid */
            id: string;
            name: string;
        };
        /** @description Value of points. */
        MapColour: {
            /** @description Colour of a label; otherwise empty */
            color: string;
            count: number;
            name: string;
            value: string;
        };
        /** @description A way to colour the points. */
        MapColouring: {
            /** @description For each point, the index of its value, or -1 */
            at: number[];
            name: components["schemas"]["NameEnum"];
            values: components["schemas"]["MapColour"][];
        };
        /** @description Points in columns: one entry each in every list. */
        MapPoints: {
            /** @description Index in `canvases` */
            canvas: number[];
            canvases: components["schemas"]["MapCanvas"][];
            colourings: components["schemas"]["MapColouring"][];
            rois: string[];
            /** @description Versions of the ROIs */
            versions: number[];
            /** @description 0 to 65535 */
            x: number[];
            /** @description 0 to 65535, from top to bottom */
            y: number[];
        };
        /**
         * @description * `histology` - Histology
         *     * `endoscopy` - Endoscopy
         * @enum {string}
         */
        ModalityEnum: "histology" | "endoscopy";
        /** @description A mosaic; it shows on ``canvas`` once it is ready. */
        Mosaic: {
            anchor_index: number | null;
            /** Format: uuid */
            canvas: string | null;
            /** Format: uuid */
            case: string;
            components: components["schemas"]["MosaicComponent"][];
            config: components["schemas"]["MosaicConfig"];
            /** Format: date-time */
            created_at: string;
            /** @description What built it: version, and hash of all its settings */
            engine: {
                [key: string]: unknown;
            };
            readonly error: components["schemas"]["ItemError"] | null;
            frame_count: number;
            frame_height: number | null;
            frame_width: number | null;
            height: number | null;
            /** Format: uuid */
            id: string;
            motion_model: string;
            name: string;
            /** @description A small JPEG of the whole; null until it is ready. */
            readonly preview_url: string | null;
            /** @description Figures of how well it fits */
            quality: {
                [key: string]: unknown;
            };
            registered_count: number;
            /**
             * Format: double
             * @description How long the build took
             */
            seconds: number;
            state: components["schemas"]["ItemStateEnum"];
            /** Format: date-time */
            updated_at: string;
            /** Format: uuid */
            video: string;
            /** Format: uuid */
            video_canvas: string | null;
            width: number | null;
        };
        /** @description A mosaic, with the job that builds it; null if it was built already. */
        MosaicAccepted: {
            anchor_index: number | null;
            /** Format: uuid */
            canvas: string | null;
            /** Format: uuid */
            case: string;
            components: components["schemas"]["MosaicComponent"][];
            config: components["schemas"]["MosaicConfig"];
            /** Format: date-time */
            created_at: string;
            /** @description What built it: version, and hash of all its settings */
            engine: {
                [key: string]: unknown;
            };
            readonly error: components["schemas"]["ItemError"] | null;
            frame_count: number;
            frame_height: number | null;
            frame_width: number | null;
            height: number | null;
            /** Format: uuid */
            id: string;
            job: components["schemas"]["Job"] | null;
            motion_model: string;
            name: string;
            /** @description A small JPEG of the whole; null until it is ready. */
            readonly preview_url: string | null;
            /** @description Figures of how well it fits */
            quality: {
                [key: string]: unknown;
            };
            registered_count: number;
            /**
             * Format: double
             * @description How long the build took
             */
            seconds: number;
            state: components["schemas"]["ItemStateEnum"];
            /** Format: date-time */
            updated_at: string;
            /** Format: uuid */
            video: string;
            /** Format: uuid */
            video_canvas: string | null;
            width: number | null;
        };
        /** @description A connected component of a mosaic, a canvas of its own. */
        MosaicComponent: {
            anchor_index: number | null;
            /** Format: uuid */
            canvas: string;
            height: number;
            index: number;
            readonly layers: components["schemas"]["MosaicLayer"][];
            quality: {
                [key: string]: unknown;
            };
            registered_count: number;
            /** @description Runs of frames, in order, with their seconds */
            spans: {
                [key: string]: unknown;
            }[];
            width: number;
        };
        /** @description Choices; what is left out keeps its default. */
        MosaicConfig: {
            /**
             * Format: double
             * @description Last second used of the video
             */
            end_s?: number;
            /** @description auto, similarity, affine or homography; auto by default */
            motion_model?: string;
            /**
             * Format: double
             * @description First second used of the video
             */
            start_s?: number;
            /** @description Use every step-th frame; 1 by default */
            step?: number;
        };
        /** @description A layer as 8-bit grey PNG: 0 if nothing was seen, else ``minimum`` (1) to ``maximum``. */
        MosaicLayer: {
            /**
             * Format: double
             * @description Mosaic pixels per layer pixel
             */
            downsample: number;
            /** Format: double */
            maximum: number;
            /** Format: double */
            minimum: number;
            /** @description coverage, count, uncertainty, time or time_last */
            name: string;
            unit: string;
            url: string;
        };
        MultiLineStringGeometry: {
            coordinates: [
                number,
                number
            ][][];
            type: components["schemas"]["MultiLineStringGeometryTypeEnum"];
        };
        /** @enum {string} */
        MultiLineStringGeometryTypeEnum: "MultiLineString";
        MultiPointGeometry: {
            coordinates: [
                number,
                number
            ][];
            type: components["schemas"]["MultiPointGeometryTypeEnum"];
        };
        /** @enum {string} */
        MultiPointGeometryTypeEnum: "MultiPoint";
        MultiPolygonGeometry: {
            coordinates: [
                number,
                number
            ][][][];
            type: components["schemas"]["MultiPolygonGeometryTypeEnum"];
        };
        /** @enum {string} */
        MultiPolygonGeometryTypeEnum: "MultiPolygon";
        /**
         * @description * `label` - label
         *     * `organ` - organ
         *     * `diagnosis` - diagnosis
         *     * `stain` - stain
         *     * `case` - case
         *     * `scanner` - scanner
         *     * `review_state` - review_state
         * @enum {string}
         */
        NameEnum: "label" | "organ" | "diagnosis" | "stain" | "case" | "scanner" | "review_state";
        /** @description Nuclei of a region in columns: one entry each in every list. */
        Nuclei: {
            /** @description 0 to 3 */
            bin: number[];
            is_stale: boolean;
            /** @description Level-0 pixels */
            radius: number[];
            /** @description Level-0 pixels */
            x: number[];
            /** @description Level-0 pixels */
            y: number[];
        };
        /** @description A rough outline of what would be made. */
        Outline: {
            class: string;
            /** @description x, y alternating, in level-0 pixels */
            rings: number[][];
            status: components["schemas"]["OutlineStatusEnum"];
        };
        /**
         * @description * `created` - created
         *     * `updated` - updated
         *     * `restored` - restored
         *     * `unchanged` - unchanged
         * @enum {string}
         */
        OutlineStatusEnum: "created" | "updated" | "restored" | "unchanged";
        /** @description Another person who has the canvas open. */
        Person: {
            /** @description 0 to 7, the same on every page */
            hue: number;
            /** Format: uuid */
            id: string;
            initials: string;
            name: string;
            /**
             * Format: uuid
             * @description The ROI that they have selected
             */
            roi: string | null;
            /** @description left, top, right, bottom */
            view: [
                number,
                number,
                number,
                number
            ] | null;
        };
        PointGeometry: {
            coordinates: [
                number,
                number
            ];
            type: components["schemas"]["PointGeometryTypeEnum"];
        };
        /** @enum {string} */
        PointGeometryTypeEnum: "Point";
        PolygonGeometry: {
            coordinates: [
                number,
                number
            ][][];
            type: components["schemas"]["PolygonGeometryTypeEnum"];
        };
        /** @enum {string} */
        PolygonGeometryTypeEnum: "Polygon";
        /** @description An ROI as it appears on another plane; derived, never stored. */
        ProjectedRoi: {
            /**
             * Format: uuid
             * @description The canvas it belongs to
             */
            drawn_on: string;
            frame_index: number | null;
            frame_pts: number | null;
            /** @description On the plane that was asked about, cut to what is seen there */
            geometry: components["schemas"]["Geometry"];
            /** Format: uuid */
            label: string | null;
            name: string;
            /** Format: uuid */
            roi: string;
            /**
             * Format: double
             * @description Share of the outline's area that is seen there
             */
            share: number;
            /** Format: double */
            uncertainty_px: number | null;
            version: number;
        };
        /** @description All of them. */
        ProjectedRois: {
            count: number;
            results: components["schemas"]["ProjectedRoi"][];
        };
        /** @description A property that a lab keeps. */
        PropertyType: {
            /** @description For the kind choice */
            choices: string[];
            key: string;
            kind: components["schemas"]["PropertyTypeKindEnum"];
            /** @description The name that people see; if empty, the key */
            name: string;
            /** @description It is not asked for on new ROIs */
            retired: boolean;
            /** @description For the kind number */
            unit: string;
        };
        /**
         * @description * `text` - text
         *     * `number` - number
         *     * `choice` - choice
         *     * `yes-no` - yes-no
         * @enum {string}
         */
        PropertyTypeKindEnum: "text" | "number" | "choice" | "yes-no";
        /** @description The properties of a lab, in their order. */
        PropertyTypes: {
            /** Format: uuid */
            lab: string;
            /** @description A mark of these properties as they are */
            mark: string;
            properties: components["schemas"]["PropertyType"][];
        };
        /** @description Outlines from the tightest to the widest, each inside the next. */
        ProposedOutlines: {
            geometries: components["schemas"]["PolygonGeometry"][];
            /** @description Position of the one to show first */
            likely: number;
        };
        /** @description A stored query and its author. */
        Query: {
            /** Format: uuid */
            canvas: string | null;
            /** Format: date-time */
            readonly created_at: string;
            /** Format: int64 */
            frame_pts: number | null;
            /** @description GeoJSON of an area, level-0 pixels */
            readonly geometry: components["schemas"]["Geometry"] | null;
            /** Format: uuid */
            readonly id: string;
            /** @description Whether it has the vector that it needs; `examples` and `rois` need none of their own */
            readonly is_embedded: boolean;
            kind: components["schemas"]["ModalityEnum"];
            /** Format: uuid */
            lab: string;
            /** @description ids of ROIs that hits should be like */
            liked: unknown;
            /**
             * Format: double
             * @description For a picture, as it was entered
             */
            mpp: number | null;
            readonly name: string;
            /** @description null if there is none yet */
            readonly picture_url: string | null;
            /**
             * Format: double
             * @description Searches for the same structures this many times as large
             */
            scale: number;
            /** @description URL of the similar regions. */
            readonly similar_url: string;
            source: components["schemas"]["QuerySourceEnum"];
            /** @description ids of ROIs that hits should not be like */
            unliked: unknown;
            readonly user: string;
        };
        /**
         * @description * `area` - Area
         *     * `frame` - Video frame
         *     * `picture` - Picture
         *     * `tissue` - Tissue of a whole slide
         *     * `rois` - Regions of a whole slide
         *     * `examples` - Examples
         * @enum {string}
         */
        QuerySourceEnum: "area" | "frame" | "picture" | "tissue" | "rois" | "examples";
        /** @description Figures of a region, and the job that measures it. */
        RegionFigures: {
            /** @description null if it was never measured */
            figures: components["schemas"]["Figures"] | null;
            /** @description circle 2.37 mm², field 3 of 10, 0.237 mm²; empty without one */
            fixed_size: string;
            /** @description The grid that a field belongs to */
            grid: components["schemas"]["GridFigures"] | null;
            /** @description The outline or the pixel size has changed since it was measured */
            is_stale: boolean;
            /** @description Unfinished, or failed */
            job: components["schemas"]["Job"] | null;
            /** Format: uuid */
            roi: string;
        };
        /** @description Results of a review step. */
        Reviewed: {
            results: components["schemas"]["Verdict"][];
        };
        /**
         * @description * `draft` - Draft
         *     * `submitted` - Submitted
         *     * `accepted` - Accepted
         *     * `rejected` - Rejected
         * @enum {string}
         */
        ReviewStateEnum: "draft" | "submitted" | "accepted" | "rejected";
        /** @description An ROI. ``version`` is its ETag. */
        Roi: {
            /** Format: double */
            area_px: number;
            /**
             * Format: double
             * @description null if the scale of the canvas is unknown
             */
            area_um2: number | null;
            /** @description left, top, right, bottom */
            bounds: [
                number,
                number,
                number,
                number
            ];
            /** Format: uuid */
            canvas: string;
            centroid: [
                number,
                number
            ];
            /** Format: date-time */
            created_at: string;
            created_by: string | null;
            /** Format: date-time */
            deleted_at: string | null;
            description: string;
            frame: components["schemas"]["FrameOut"] | null;
            geometry: components["schemas"]["Geometry"];
            /** Format: uuid */
            id: string;
            /** @description true once similar cases can be searched */
            is_embedded: boolean;
            /** Format: uuid */
            label: string | null;
            /**
             * Format: double
             * @description For a line; otherwise null
             */
            length_px: number | null;
            /** Format: double */
            length_um: number | null;
            /** @description Cannot be changed or deleted until unlocked */
            locked: boolean;
            name: string;
            /** @description What this write did to the outline: repaired, clipped */
            notes: string[];
            /** @description Number of points; null for other shapes */
            points: number | null;
            properties: {
                [key: string]: string;
            };
            review_state: components["schemas"]["ReviewStateEnum"];
            /**
             * @description An ellipse fills its bounds
             *
             *     * `polygon` - Polygon
             *     * `ellipse` - Ellipse
             *     * `point` - Points
             *     * `line` - Line
             */
            shape: components["schemas"]["ShapeEnum"];
            /** @description On a video: key frames besides its own frame */
            track: components["schemas"]["KeyFrame"][];
            /** Format: date-time */
            updated_at: string;
            version: number;
        };
        /** @description An ROI that changed. */
        RoiChanged: {
            /** Format: uuid */
            id: string;
            is_deleted: boolean;
            /** @description The ROI as it is now; null if it is large, or was sent before */
            roi: components["schemas"]["Roi"] | null;
            version: number;
        };
        /** @description The frames that see an ROI, those that see all of it first, the sharpest among them first. */
        RoiFrames: {
            count: number;
            results: components["schemas"]["RoiInFrame"][];
        };
        /** @description An import: document, current job, progress and results. */
        RoiImport: {
            /** Format: uuid */
            readonly canvas: string;
            /** Format: date-time */
            readonly created_at: string;
            readonly done: number;
            readonly format: string;
            /** Format: uuid */
            readonly id: string;
            readonly job: components["schemas"]["Job"] | null;
            readonly name: string;
            /** @description null until something is known; partial while the import is running */
            readonly report: components["schemas"]["StoredReport"] | null;
            readonly stage: components["schemas"]["ImportStageEnum"];
            /** @description Partial while the import is being undone */
            readonly undone: components["schemas"]["ImportUndone"] | null;
            /** Format: date-time */
            readonly undone_at: string | null;
        };
        /** @description A frame that sees an ROI of the mosaic; ``xy_frame`` is its middle. */
        RoiInFrame: {
            /** Format: double */
            from_centre_px: number;
            /** @description The outline in the frame, cut to the scope's view */
            geometry: components["schemas"]["Geometry"];
            /** @description The frame as JPEG. */
            readonly image_url: string;
            index: number;
            /** @description The frame's view on the mosaic */
            outline: [
                number,
                number
            ][];
            pts: number;
            /** Format: double */
            share: number;
            /**
             * Format: double
             * @description Compare within one video
             */
            sharpness: number | null;
            /** Format: double */
            time_s: number;
            /**
             * Format: double
             * @description One standard deviation
             */
            uncertainty_px: number | null;
            /** @description The video at that frame, the point in the middle. */
            readonly viewer_url: string;
            xy_frame: [
                number,
                number
            ];
        };
        /** @description The state after one change. */
        RoiRevision: {
            action: string;
            /** @description The name of who made the change. */
            readonly author: string | null;
            /** Format: date-time */
            created_at: string;
            description: string;
            geometry: components["schemas"]["Geometry"];
            /** Format: uuid */
            label: string | null;
            /** @description Its name at that time */
            label_name: string;
            /** @description The version of the labels that was the latest published at that time */
            label_version: number | null;
            locked: boolean;
            name: string;
            properties: {
                [key: string]: string;
            };
            review_state: components["schemas"]["ReviewStateEnum"];
            shape: components["schemas"]["ShapeEnum"];
            track: components["schemas"]["KeyFrame"][];
            version: number;
        };
        /** @description The ROIs as they are now, in the order of the changes. */
        RoisChanged: {
            rois: components["schemas"]["Roi"][];
        };
        /** @description Change of one ROI; fields that an update omits keep their values. */
        RoiStepRequest: {
            description?: string;
            do: components["schemas"]["DoEnum"];
            frame?: components["schemas"]["FrameReferenceRequest"] | null;
            /**
             * @description Required for a new ROI
             * @example {
             *       "type": "Polygon",
             *       "coordinates": [
             *         [
             *           [
             *             10,
             *             10
             *           ],
             *           [
             *             90,
             *             10
             *           ],
             *           [
             *             90,
             *             80
             *           ],
             *           [
             *             10,
             *             10
             *           ]
             *         ]
             *       ]
             *     }
             */
            geometry?: {
                coordinates: unknown[];
                /** @enum {string} */
                type: "Polygon" | "MultiPolygon" | "Point" | "MultiPoint" | "LineString" | "MultiLineString";
            };
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            label?: string | null;
            locked?: boolean;
            name?: string;
            properties?: {
                [key: string]: string;
            };
            shape?: components["schemas"]["ShapeEnum"];
            track?: components["schemas"]["KeyFrameInputRequest"][];
            /** @description Required, except for a new ROI */
            version?: number;
        };
        /**
         * @description * `polygon` - Polygon
         *     * `ellipse` - Ellipse
         *     * `point` - Points
         *     * `line` - Line
         * @enum {string}
         */
        ShapeEnum: "polygon" | "ellipse" | "point" | "line";
        /** @description A square of the slide. */
        SimilarRegion: {
            /** @description left, top, right, bottom in level-0 pixels */
            bounds: [
                number,
                number,
                number,
                number
            ];
            /**
             * Format: double
             * @description Euclidean distance between its vector and that of the ROI
             */
            distance: number;
            /** @description Nearer than the nearest of as many unrelated regions usually is */
            is_close: boolean | null;
            /**
             * Format: double
             * @description Share of unrelated regions that come as close; null if the encoder is not calibrated
             */
            p_value: number | null;
        };
        /** @description Squares most similar to the ROI that are not drawn on, nearest first. */
        SimilarRegions: {
            /** @description Squares left out because ROIs cover them */
            drawn_on: number;
            encoder: components["schemas"]["Encoder"];
            /** @description Squares that were compared */
            looked_at: number;
            regions: components["schemas"]["SimilarRegion"][];
            /** @description Side of each square, in level-0 pixels */
            side_px: number;
            /** @description Squares in the tissue; if more than `tried`, a sample was taken */
            total: number;
            /** @description Squares that were sampled */
            tried: number;
        };
        /** @description A slide or still. ``properties`` holds allow-listed vendor metadata only. */
        Slide: {
            /** Format: uuid */
            readonly canvas: string | null;
            /** Format: uuid */
            readonly case: string;
            /** Format: date-time */
            readonly created_at: string;
            readonly error: components["schemas"]["ItemError"] | null;
            /** Format: uuid */
            readonly id: string;
            /** @description A person said it, not the file */
            readonly is_stain_by_hand: boolean;
            readonly name: string;
            /** Format: double */
            readonly objective_power: number | null;
            readonly properties: {
                [key: string]: string;
            };
            readonly removed: string[];
            readonly sha256: string;
            readonly size_bytes: number;
            /** @description Empty where nobody knows it */
            readonly stain: string;
            readonly state: components["schemas"]["ItemStateEnum"];
            /** Format: date-time */
            readonly updated_at: string;
            readonly vendor: string;
            readonly warnings: string[];
        };
        /**
         * @description * `dab-nuclear` - DAB in nuclei (Ki-67, ER, PR)
         *     * `dab` - DAB in cytoplasm or membranes
         *     * `he` - H&E
         * @enum {string}
         */
        StainingEnum: "dab-nuclear" | "dab" | "he";
        /** @description The same report as of an import at once; a preview adds outlines to draw. */
        StoredReport: {
            classes: components["schemas"]["ImportClass"][];
            created: number;
            /** @description Events of a video among those created, updated and restored */
            events: number;
            /** @description The format that it was read as; `mixed` for several */
            format: string;
            /** @description All reasons and repairs with their counts */
            groups: components["schemas"]["ImportGroup"][];
            /**
             * Format: uuid
             * @description POST /roi-imports/{id}/undo/ undoes it; null if nothing was changed
             */
            id: string | null;
            /** @description Of a document of several images, or an archive of several documents: which was read, and by what */
            image_decided: string;
            /** @description Nothing was written */
            is_preview: boolean;
            /** @description Every feature; if there are more than 2,000, the refused and repaired ones, at most 2,000 */
            items: components["schemas"]["ImportItem"][];
            labels_created: string[];
            outlines?: components["schemas"]["Outline"][];
            refused: number;
            /** @description Outlines that were repaired or clipped */
            repaired: number;
            restored: number;
            total: number;
            unchanged: number;
            updated: number;
        };
        /** @description A frame of the frame table: index and PTS together name it. */
        TableFrame: {
            index: number;
            key: boolean;
            pts: number;
            /** Format: double */
            time_s: number;
        };
        /** @description A step of review, or a comment. */
        ThreadEntry: {
            /** Format: date-time */
            at: string;
            author: string | null;
            /** Format: uuid */
            id: string;
            /** @description `comment`, or the state that the step led to */
            kind: string;
            /** @description Members mentioned in the text, as written: `@` and a full name or an address */
            mentions: string[];
            text: string;
            /** @description Version of the ROI when this was written */
            version: number;
        };
        /** @description Unread notifications of the user. */
        Unread: {
            /** @description At most 100 */
            count: number;
        };
        /** @description A transfer: how far it is, and what became of it. */
        Upload: {
            /**
             * Format: uuid
             * @description null for a crate that was not imported
             */
            case: string | null;
            /** Format: date-time */
            created_at: string;
            readonly error: components["schemas"]["UploadError"] | null;
            /**
             * Format: date-time
             * @description Time of deletion if nothing more arrives; null once it has arrived.
             */
            readonly expires_at: string | null;
            filename: string;
            /** Format: uuid */
            id: string;
            readonly item: components["schemas"]["UploadItem"] | null;
            /** @description The job that checks the file */
            job: components["schemas"]["Job"] | null;
            offset: number;
            /** @description As announced; later as measured */
            sha256: string;
            size_bytes: number;
            state: components["schemas"]["UploadStateEnum"];
        };
        /** @description Why a file was not stored. */
        UploadError: {
            code: string;
            message: string;
        };
        /** @description The slide or video that was made of a file. */
        UploadItem: {
            /** Format: uuid */
            id: string;
            kind: components["schemas"]["ItemKindEnum"];
            name: string;
        };
        /**
         * @description * `receiving` - Receiving
         *     * `checking` - Checking
         *     * `stored` - Stored
         *     * `refused` - Refused
         *     * `quarantined` - In quarantine
         *     * `withheld` - Original of a redacted file
         * @enum {string}
         */
        UploadStateEnum: "receiving" | "checking" | "stored" | "refused" | "quarantined" | "withheld";
        /** @description Result of reviewing one ROI. */
        Verdict: {
            detail: string;
            /** Format: uuid */
            id: string;
            /** @description `done`, `unchanged`, or the code of a problem: `stale-version`, `not-submitted`, `own-roi`, `forbidden`, `not-found` */
            outcome: string;
            version: number | null;
        };
        /** @description An event of a video. ``version`` is its ETag. */
        VideoEvent: {
            /** Format: uuid */
            canvas: string;
            /** Format: date-time */
            created_at: string;
            created_by: string | null;
            /** Format: date-time */
            deleted_at: string | null;
            first: components["schemas"]["FrameOut"];
            /** Format: uuid */
            id: string;
            /** @description The frame of `first` for a moment */
            last: components["schemas"]["FrameOut"];
            name: string;
            note: string;
            /** Format: date-time */
            updated_at: string;
            version: number;
        };
        /** @description Names to suggest, those that the lab uses most first. */
        VideoEventNames: {
            names: string[];
        };
        /** @description Revision of an event. */
        VideoEventRevision: {
            action: string;
            author: string | null;
            /** Format: date-time */
            readonly created_at: string;
            /** Format: int64 */
            first_index: number;
            /** Format: int64 */
            last_index: number;
            name: string;
            note: string;
            /** Format: int64 */
            version: number;
        };
        /** @description Place of a waiting job in its queue. */
        Wait: {
            /** @description 1 is next */
            position: number;
            /**
             * Format: double
             * @description Estimated time until it starts; null while unknown
             */
            seconds: number | null;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
