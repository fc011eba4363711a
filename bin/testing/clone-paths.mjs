/**
 * This clone's place, as jest is told of it: it takes what it is to leave out for expressions over whole
 * paths, and a clone may lie in a folder `c++`, or one `test/e2e`.
 */
import { fileURLToPath } from "node:url";

/** Without a slash at its end. */
const CLONE = fileURLToPath(new URL("../..", import.meta.url)).replace(/[/\\]$/, "");

/** A text as an expression for itself. */
export const escaped = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");

/** An expression for what lies in this clone, from another one for what is behind the clone's own path. */
export const inClone = (pattern) => `^${escaped(CLONE)}${pattern}`;

/** Whether the clone's path, taken for an expression, means itself. */
export const isPlainClone = escaped(CLONE.replaceAll(".", "")) === CLONE.replaceAll(".", "");
