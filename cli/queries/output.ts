/** How answers are printed: one line of JSON, or for people as YAML. */

/** Lines of a JSON value as YAML; texts are quoted where YAML would read something else. */
export function yamlLines(value: unknown): readonly string[] {
  if (Array.isArray(value)) {
    return value.length === 0 ? ["[]"] : value.flatMap((one: unknown) => listItem(one));
  }
  if (typeof value !== "object" || value === null) return [scalar(value)];
  const members = Object.entries(value);
  if (members.length === 0) return ["{}"];
  return members.flatMap(([name, member]) => {
    const lines = yamlLines(member);
    if (!isNested(member)) return [`${key(name)}: ${lines[0] ?? ""}`];
    const indent = Array.isArray(member) ? "" : "  ";
    return [`${key(name)}:`, ...lines.map((line) => `${indent}${line}`)];
  });
}

function listItem(value: unknown): readonly string[] {
  const [first = "", ...rest] = yamlLines(value);
  return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
}

function isNested(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function key(name: string): string {
  return /^[A-Za-z_][\w.-]*$/.test(name) ? name : JSON.stringify(name);
}

/** What YAML would take for a number, a truth value, nothing, or structure is quoted. */
function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value);
  const isPlain =
    /^[A-Za-z/][\w./ -]*$/.test(value) &&
    !/^(true|false|null|yes|no|on|off|y|n)$/i.test(value) &&
    !value.endsWith(" ");
  return isPlain ? value : JSON.stringify(value);
}
