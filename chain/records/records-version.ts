/** Version of the records. Who asks for them names it, and gets JSON from a node that has another one. */
export const RECORDS_VERSION = 1;
