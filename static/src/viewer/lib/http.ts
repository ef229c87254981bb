/** The REST API, as every bundle calls it. */

export * from "../../dom/http";
