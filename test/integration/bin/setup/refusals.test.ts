/** What is said before anything is set up: of a Node that does not fit, and of a clone that nobody may write to. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@jest/globals";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

describe("the version of Node", () => {
  it("is refused where the product does not run, with those on which it does", () => {
    const versions = ["18.20.8", "20.18.3", "20.19.0", "21.7.3", "22.0.0", "22.11.0", "22.12.0"];
    const later = ["23.0.0", "24.11.1", "25.2.1"];
    const script = `import(${JSON.stringify(join(ROOT, "bin", "setup", "prepare.mjs"))}).then(({ nodeFault }) =>
      console.log(JSON.stringify(${JSON.stringify([...versions, ...later])}.map(nodeFault))));`;
    const { stdout } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
    const faultOf = (version: string) => `Node 20.19, 22.12 or newer is needed; this is ${version}`;
    const refused = ["18.20.8", "20.18.3", "21.7.3", "22.0.0", "22.11.0"];
    expect(JSON.parse(stdout)).toEqual(
      [...versions, ...later].map((version) =>
        refused.includes(version) ? faultOf(version) : null,
      ),
    );
  });
});

describe("a clone that cannot be written to", () => {
  const remedy =
    "; packages or build are missing, or of older sources: make the clone writable, or type " +
    "`npm run build` once as its owner";

  it.each([
    ["EACCES", `permission denied${remedy}`],
    ["EROFS", `read-only file system${remedy}`],
    ["ENOSPC", "disk full"],
    ["EDQUOT", "disk quota used up"],
  ])("is named in one sentence, with what to do about it: %s", (code, sentence) => {
    const path = "/srv/causeway/.cache";
    const fault = `Object.assign(new Error("mkdir"), ${JSON.stringify({ code, path })})`;
    const script = `import(${JSON.stringify(join(ROOT, "bin", "setup", "setup-error.mjs"))}).then(({ runSetup }) =>
      runSetup(() => { throw ${fault}; }));`;
    const { status, stderr } = spawnSync(process.execPath, ["-e", script], { encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 1, stderr: `causeway: ${path}: ${sentence}\n` });
  });
});
