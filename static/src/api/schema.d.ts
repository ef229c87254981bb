// Generated from the OpenAPI schema by `npm run types`; do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        BulkResult: {
            changed: string[];
            problems: components["schemas"]["CaseProblem"][];
            unchanged: number;
        };
        ByEnum: "hand" | "tracking";
        Canvas: {
            readonly can_annotate: boolean;
            readonly can_review: boolean;
            readonly can_scale: boolean;
            readonly can_set_display_range: boolean;
            readonly case: components["schemas"]["CanvasCase"];
            readonly display_range: components["schemas"]["DisplayRange"] | null;
            readonly file_display_range: components["schemas"]["DisplayRange"] | null;
            has_icc_profile: boolean;
            readonly height: number;
            readonly id: string;
            is_modality_by_hand: boolean;
            is_scaled_by_hand: boolean;
            kind: components["schemas"]["CanvasKindEnum"];
            readonly levels: components["schemas"]["Level"][];
            modality: components["schemas"]["ModalityEnum"];
            mpp_x: number | null;
            mpp_y: number | null;
            name: string;
            readonly stain: string;
            readonly thumbnail_url: string | null;
            readonly tile_url: string | null;
            readonly video: components["schemas"]["CanvasVideo"] | null;
            readonly width: number;
        };
        CanvasCase: {
            accession: string;
            id: string;
        };
        CanvasKindEnum: "slide" | "still" | "video" | "mosaic";
        CanvasNow: {
            changed: components["schemas"]["RoiChanged"][];
            cursor: string;
            has_more: boolean;
            people: components["schemas"]["Person"][];
            video_events: number;
        };
        CanvasVideo: {
            duration_s: number;
            filmstrip_count: number;
            filmstrip_url: string;
            fps: number;
            frame_count: number;
            frame_url: string;
            frames_url: string;
            id: string;
            readonly is_mirrored: boolean | null;
            media_offset_s: number;
            media_url: string;
            readonly rotation_deg: number | null;
            readonly sample_aspect_ratio: string | null;
            readonly stored_height: number | null;
            readonly stored_width: number | null;
            time_base_s: number;
        };
        CaseDetails: {
            cases: string[];
            diagnosis?: string;
            organ?: string;
        };
        CaseProblem: {
            accession: string;
            case: string;
            code: string;
            detail: string;
        };
        DetailsResult: {
            before: components["schemas"]["CaseDetails"][];
            changed: string[];
            problems: components["schemas"]["CaseProblem"][];
            unchanged: number;
        };
        DisplayRange: {
            high: number;
            low: number;
        };
        DoEnum: "create" | "update" | "delete" | "restore";
        EmbeddingPending: {
            job: components["schemas"]["Job"];
        };
        Encoder: {
            base: string | null;
            config_hash: string;
            dim: number;
            readonly id: string;
            is_default: boolean;
            is_next: boolean;
            kind: components["schemas"]["ModalityEnum"];
            lab: string | null;
            name: string;
            version: string;
        };
        Estimate: {
            builds: number;
            frames: number;
            seconds: number | null;
            used: number;
        };
        Figures: {
            area_mm2: number;
            bin_counts: number[];
            config_hash: string;
            h_score: number | null;
            mean_od: {
                [key: string]: number;
            };
            measured_at: string;
            nuclei_missing: string;
            nuclei_per_mm2: number | null;
            nucleus_count: number | null;
            positive_area_percent: number | null;
            positive_percent: number | null;
            roi_version: number;
            staining: components["schemas"]["StainingEnum"];
            readonly thresholds: {
                [key: string]: number;
            };
            tissue_mm2: number;
        };
        FrameAtPoint: {
            from_centre_px: number;
            readonly image_url: string;
            index: number;
            outline: [
                number,
                number
            ][];
            pts: number;
            sharpness: number | null;
            time_s: number;
            uncertainty_px: number | null;
            readonly viewer_url: string;
            xy_frame: [
                number,
                number
            ];
        };
        FrameColumns: {
            component: (number | null)[];
            count: number;
            index: number[];
            outline: (number[] | null)[];
            pts: number[];
            reason: number[];
            reasons: components["schemas"]["FrameReason"][];
            time_base_s: number;
        };
        FrameOut: {
            index: number;
            pts: number;
            time_s: number;
        };
        FramePage: {
            count: number;
            frames: components["schemas"]["TableFrame"][];
            next: string | null;
            start: number;
            time_base_s: number;
        };
        FrameReason: {
            code: string;
            color: string;
            name: string;
        };
        FrameReferenceRequest: {
            index?: number;
            pts?: number;
        };
        FramesAtPoint: {
            count: number;
            results: components["schemas"]["FrameAtPoint"][];
        };
        Geometry: components["schemas"]["PolygonGeometry"] | components["schemas"]["MultiPolygonGeometry"] | components["schemas"]["PointGeometry"] | components["schemas"]["MultiPointGeometry"] | components["schemas"]["LineStringGeometry"] | components["schemas"]["MultiLineStringGeometry"];
        GridFigures: {
            area_mm2: number;
            field_count: number;
            measured_count: number;
            nuclei_per_mm2: number | null;
            nucleus_count: number | null;
            text: string;
        };
        ImportClass: {
            color: string | null;
            count: number;
            label: string | null;
            label_name: string;
            name: string;
            outcome: components["schemas"]["ImportClassOutcomeEnum"];
            problem: string;
        };
        ImportClassOutcomeEnum: "known" | "mapped" | "created" | "none" | "refused";
        ImportGroup: {
            count: number;
            first: number[];
            reason: string;
            shapes: string[];
            status: components["schemas"]["ImportGroupStatusEnum"];
        };
        ImportGroupStatusEnum: "refused" | "repaired";
        ImportItem: {
            index: number;
            notes: string[];
            reason: string;
            roi: string | null;
            shape: string;
            status: components["schemas"]["ImportItemStatusEnum"];
        };
        ImportItemStatusEnum: "created" | "updated" | "restored" | "unchanged" | "refused";
        ImportStageEnum: "previewing" | "previewed" | "importing" | "imported" | "undoing";
        ImportUndone: {
            removed: number;
            reverted: number;
            skipped: number;
        };
        ItemError: {
            code: string;
            message: string;
        };
        ItemKindEnum: "slide" | "video";
        ItemStateEnum: "preparing" | "ready" | "failed";
        Job: {
            attempts: number;
            cancel_requested: boolean;
            readonly created_at: string;
            readonly error: components["schemas"]["JobError"] | null;
            finished_at: string | null;
            readonly id: string;
            kind: string;
            max_attempts: number;
            readonly outcome: string;
            phase: string;
            readonly priority: string;
            readonly progress: components["schemas"]["JobProgress"];
            result: unknown;
            readonly seconds_left: number | null;
            started_at: string | null;
            state: components["schemas"]["JobStateEnum"];
            target_id: string | null;
            target_name: string;
            target_type: string;
            readonly title: string;
            readonly wait: components["schemas"]["Wait"] | null;
        };
        JobError: {
            code: string;
            message: string;
        };
        JobProgress: {
            done: number;
            percent: number;
            total: number;
        };
        JobStateEnum: "queued" | "running" | "succeeded" | "failed" | "cancelled";
        KeyFrame: {
            by: components["schemas"]["ByEnum"];
            drift_px: number;
            geometry: components["schemas"]["Geometry"] | null;
            index: number;
            outside: boolean;
            pts: number;
            shape: components["schemas"]["ShapeEnum"];
        };
        KeyFrameInputRequest: {
            by?: components["schemas"]["ByEnum"];
            drift_px?: number;
            geometry?: {
                coordinates: unknown[];
                type: "Polygon" | "MultiPolygon" | "Point" | "MultiPoint" | "LineString" | "MultiLineString";
            } | null;
            index: number;
            outside?: boolean;
            pts?: number;
            shape?: components["schemas"]["ShapeEnum"];
        };
        Label: {
            color: string;
            id: string;
            key: string;
            lab: string;
            merged_into: string | null;
            name: string;
            parent: string | null;
            position: number;
            retired: boolean;
        };
        LabelMerge: {
            canvases: number;
            cases: number;
            id: string | null;
            locked: number;
            rois: number;
        };
        LabelMergeUndone: {
            reverted: number;
            skipped: number;
        };
        Level: {
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
        LineStringGeometryTypeEnum: "LineString";
        MapCanvas: {
            accession: string;
            id: string;
            name: string;
        };
        MapColour: {
            color: string;
            count: number;
            name: string;
            value: string;
        };
        MapColouring: {
            at: number[];
            name: components["schemas"]["NameEnum"];
            values: components["schemas"]["MapColour"][];
        };
        MapPoints: {
            canvas: number[];
            canvases: components["schemas"]["MapCanvas"][];
            colourings: components["schemas"]["MapColouring"][];
            rois: string[];
            versions: number[];
            x: number[];
            y: number[];
        };
        ModalityEnum: "histology" | "endoscopy";
        Mosaic: {
            anchor_index: number | null;
            canvas: string | null;
            case: string;
            components: components["schemas"]["MosaicComponent"][];
            config: components["schemas"]["MosaicConfig"];
            created_at: string;
            engine: {
                [key: string]: unknown;
            };
            readonly error: components["schemas"]["ItemError"] | null;
            frame_count: number;
            frame_height: number | null;
            frame_width: number | null;
            height: number | null;
            id: string;
            motion_model: string;
            name: string;
            readonly preview_url: string | null;
            quality: {
                [key: string]: unknown;
            };
            registered_count: number;
            seconds: number;
            state: components["schemas"]["ItemStateEnum"];
            updated_at: string;
            video: string;
            video_canvas: string | null;
            width: number | null;
        };
        MosaicAccepted: {
            anchor_index: number | null;
            canvas: string | null;
            case: string;
            components: components["schemas"]["MosaicComponent"][];
            config: components["schemas"]["MosaicConfig"];
            created_at: string;
            engine: {
                [key: string]: unknown;
            };
            readonly error: components["schemas"]["ItemError"] | null;
            frame_count: number;
            frame_height: number | null;
            frame_width: number | null;
            height: number | null;
            id: string;
            job: components["schemas"]["Job"] | null;
            motion_model: string;
            name: string;
            readonly preview_url: string | null;
            quality: {
                [key: string]: unknown;
            };
            registered_count: number;
            seconds: number;
            state: components["schemas"]["ItemStateEnum"];
            updated_at: string;
            video: string;
            video_canvas: string | null;
            width: number | null;
        };
        MosaicComponent: {
            anchor_index: number | null;
            canvas: string;
            height: number;
            index: number;
            readonly layers: components["schemas"]["MosaicLayer"][];
            quality: {
                [key: string]: unknown;
            };
            registered_count: number;
            spans: {
                [key: string]: unknown;
            }[];
            width: number;
        };
        MosaicConfig: {
            end_s?: number;
            motion_model?: string;
            start_s?: number;
            step?: number;
        };
        MosaicLayer: {
            downsample: number;
            maximum: number;
            minimum: number;
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
        MultiLineStringGeometryTypeEnum: "MultiLineString";
        MultiPointGeometry: {
            coordinates: [
                number,
                number
            ][];
            type: components["schemas"]["MultiPointGeometryTypeEnum"];
        };
        MultiPointGeometryTypeEnum: "MultiPoint";
        MultiPolygonGeometry: {
            coordinates: [
                number,
                number
            ][][][];
            type: components["schemas"]["MultiPolygonGeometryTypeEnum"];
        };
        MultiPolygonGeometryTypeEnum: "MultiPolygon";
        NameEnum: "label" | "organ" | "diagnosis" | "stain" | "case" | "scanner" | "review_state";
        Nuclei: {
            bin: number[];
            is_stale: boolean;
            radius: number[];
            x: number[];
            y: number[];
        };
        Outline: {
            class: string;
            rings: number[][];
            status: components["schemas"]["OutlineStatusEnum"];
        };
        OutlineStatusEnum: "created" | "updated" | "restored" | "unchanged";
        Person: {
            hue: number;
            id: string;
            initials: string;
            name: string;
            roi: string | null;
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
        PointGeometryTypeEnum: "Point";
        PolygonGeometry: {
            coordinates: [
                number,
                number
            ][][];
            type: components["schemas"]["PolygonGeometryTypeEnum"];
        };
        PolygonGeometryTypeEnum: "Polygon";
        ProjectedRoi: {
            drawn_on: string;
            frame_index: number | null;
            frame_pts: number | null;
            geometry: components["schemas"]["Geometry"];
            label: string | null;
            name: string;
            roi: string;
            share: number;
            uncertainty_px: number | null;
            version: number;
        };
        ProjectedRois: {
            count: number;
            results: components["schemas"]["ProjectedRoi"][];
        };
        PropertyType: {
            choices: string[];
            key: string;
            kind: components["schemas"]["PropertyTypeKindEnum"];
            name: string;
            retired: boolean;
            unit: string;
        };
        PropertyTypeKindEnum: "text" | "number" | "choice" | "yes-no";
        PropertyTypes: {
            etag: string;
            lab: string;
            properties: components["schemas"]["PropertyType"][];
        };
        ProposedOutlines: {
            geometries: components["schemas"]["PolygonGeometry"][];
            likely: number;
        };
        Query: {
            canvas: string | null;
            readonly created_at: string;
            frame_pts: number | null;
            readonly geometry: components["schemas"]["Geometry"] | null;
            readonly id: string;
            readonly is_embedded: boolean;
            kind: components["schemas"]["ModalityEnum"];
            lab: string;
            liked: unknown;
            mpp: number | null;
            readonly name: string;
            readonly picture_url: string | null;
            scale: number;
            readonly similar_url: string;
            source: components["schemas"]["QuerySourceEnum"];
            unliked: unknown;
            readonly user: string;
        };
        QuerySourceEnum: "area" | "frame" | "picture" | "tissue" | "rois" | "examples";
        RegionFigures: {
            figures: components["schemas"]["Figures"] | null;
            fixed_size: string;
            grid: components["schemas"]["GridFigures"] | null;
            is_stale: boolean;
            job: components["schemas"]["Job"] | null;
            roi: string;
        };
        Reviewed: {
            results: components["schemas"]["Verdict"][];
        };
        ReviewStateEnum: "draft" | "submitted" | "accepted" | "rejected";
        Roi: {
            area_px: number;
            area_um2: number | null;
            bounds: [
                number,
                number,
                number,
                number
            ];
            canvas: string;
            centroid: [
                number,
                number
            ];
            created_at: string;
            created_by: string | null;
            deleted_at: string | null;
            description: string;
            frame: components["schemas"]["FrameOut"] | null;
            geometry: components["schemas"]["Geometry"];
            id: string;
            is_embedded: boolean;
            label: string | null;
            length_px: number | null;
            length_um: number | null;
            locked: boolean;
            name: string;
            notes: string[];
            points: number | null;
            properties: {
                [key: string]: string;
            };
            review_state: components["schemas"]["ReviewStateEnum"];
            shape: components["schemas"]["ShapeEnum"];
            track: components["schemas"]["KeyFrame"][];
            updated_at: string;
            version: number;
        };
        RoiChanged: {
            id: string;
            is_deleted: boolean;
            roi: components["schemas"]["Roi"] | null;
            version: number;
        };
        RoiFrames: {
            count: number;
            results: components["schemas"]["RoiInFrame"][];
        };
        RoiImport: {
            readonly canvas: string;
            readonly created_at: string;
            readonly done: number;
            readonly format: string;
            readonly id: string;
            readonly job: components["schemas"]["Job"] | null;
            readonly name: string;
            readonly report: components["schemas"]["StoredReport"] | null;
            readonly stage: components["schemas"]["ImportStageEnum"];
            readonly undone: components["schemas"]["ImportUndone"] | null;
            readonly undone_at: string | null;
        };
        RoiInFrame: {
            from_centre_px: number;
            geometry: components["schemas"]["Geometry"];
            readonly image_url: string;
            index: number;
            outline: [
                number,
                number
            ][];
            pts: number;
            share: number;
            sharpness: number | null;
            time_s: number;
            uncertainty_px: number | null;
            readonly viewer_url: string;
            xy_frame: [
                number,
                number
            ];
        };
        RoiRevision: {
            action: string;
            readonly author: string | null;
            created_at: string;
            description: string;
            geometry: components["schemas"]["Geometry"];
            label: string | null;
            label_name: string;
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
        RoisChanged: {
            rois: components["schemas"]["Roi"][];
        };
        RoiStepRequest: {
            description?: string;
            do: components["schemas"]["DoEnum"];
            frame?: components["schemas"]["FrameReferenceRequest"] | null;
            geometry?: {
                coordinates: unknown[];
                type: "Polygon" | "MultiPolygon" | "Point" | "MultiPoint" | "LineString" | "MultiLineString";
            };
            id: string;
            label?: string | null;
            locked?: boolean;
            name?: string;
            properties?: {
                [key: string]: string;
            };
            shape?: components["schemas"]["ShapeEnum"];
            track?: components["schemas"]["KeyFrameInputRequest"][];
            version?: number;
        };
        ShapeEnum: "polygon" | "ellipse" | "point" | "line";
        SimilarRegion: {
            bounds: [
                number,
                number,
                number,
                number
            ];
            distance: number;
            is_close: boolean | null;
            p_value: number | null;
        };
        SimilarRegions: {
            drawn_on: number;
            encoder: components["schemas"]["Encoder"];
            looked_at: number;
            regions: components["schemas"]["SimilarRegion"][];
            side_px: number;
            total: number;
            tried: number;
        };
        Slide: {
            readonly canvas: string | null;
            readonly case: string;
            readonly created_at: string;
            readonly error: components["schemas"]["ItemError"] | null;
            readonly id: string;
            readonly is_stain_by_hand: boolean;
            readonly name: string;
            readonly objective_power: number | null;
            readonly properties: {
                [key: string]: string;
            };
            readonly removed: string[];
            readonly sha256: string;
            readonly size_bytes: number;
            readonly stain: string;
            readonly state: components["schemas"]["ItemStateEnum"];
            readonly updated_at: string;
            readonly vendor: string;
            readonly warnings: string[];
        };
        StainingEnum: "dab-nuclear" | "dab" | "he";
        StoredReport: {
            classes: components["schemas"]["ImportClass"][];
            created: number;
            events: number;
            format: string;
            groups: components["schemas"]["ImportGroup"][];
            id: string | null;
            image_decided: string;
            is_preview: boolean;
            items: components["schemas"]["ImportItem"][];
            labels_created: string[];
            outlines?: components["schemas"]["Outline"][];
            refused: number;
            repaired: number;
            restored: number;
            total: number;
            unchanged: number;
            updated: number;
        };
        TableFrame: {
            index: number;
            key: boolean;
            pts: number;
            time_s: number;
        };
        ThreadEntry: {
            at: string;
            author: string | null;
            id: string;
            kind: string;
            mentions: string[];
            text: string;
            version: number;
        };
        Unread: {
            count: number;
        };
        Upload: {
            case: string | null;
            created_at: string;
            readonly error: components["schemas"]["UploadError"] | null;
            readonly expires_at: string | null;
            filename: string;
            id: string;
            readonly item: components["schemas"]["UploadItem"] | null;
            job: components["schemas"]["Job"] | null;
            offset: number;
            sha256: string;
            size_bytes: number;
            state: components["schemas"]["UploadStateEnum"];
        };
        UploadError: {
            code: string;
            message: string;
        };
        UploadItem: {
            id: string;
            kind: components["schemas"]["ItemKindEnum"];
            name: string;
        };
        UploadStateEnum: "receiving" | "checking" | "stored" | "refused" | "quarantined" | "withheld";
        Verdict: {
            detail: string;
            id: string;
            outcome: string;
            version: number | null;
        };
        VideoEvent: {
            canvas: string;
            created_at: string;
            created_by: string | null;
            deleted_at: string | null;
            first: components["schemas"]["FrameOut"];
            id: string;
            last: components["schemas"]["FrameOut"];
            name: string;
            note: string;
            updated_at: string;
            version: number;
        };
        VideoEventNames: {
            names: string[];
        };
        VideoEventRevision: {
            action: string;
            author: string | null;
            readonly created_at: string;
            first_index: number;
            last_index: number;
            name: string;
            note: string;
            version: number;
        };
        Wait: {
            position: number;
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
