/** The page that sends files to a case. */

import { watchUploads } from "./upload_form";

watchUploads();
