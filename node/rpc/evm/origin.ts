/** Which web pages may talk to the node. */

/** True when the origin is listed, or all are ("*"). Compared exactly, in lower case. */
export function isAllowedOrigin(origin: string, allowed: readonly string[]): boolean {
  return allowed.includes("*") || allowed.includes(origin.toLowerCase());
}
