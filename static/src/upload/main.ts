/** The page that sends files to a case. */

import { watchUploads } from "./page";

watchUploads();
