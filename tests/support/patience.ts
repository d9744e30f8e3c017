import { setDefaultTimeout } from "bun:test";

/** Tests wait for events; this only ends one that would hang, on a machine under load too. */
setDefaultTimeout(30_000);
