/** The image of the kit's own services. */
import { describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./compose-file.js";

describe("the Dockerfile", () => {
  it("takes both stages from one image, by digest, and packages by lock", () => {
    const dockerfile = readFileSync(join(root, "Dockerfile"), "utf8");
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    expect(bases).toEqual(["${NODE_IMAGE}", "${NODE_IMAGE}"]);
    expect(dockerfile).toMatch(/^ARG NODE_IMAGE=node:\d+-[a-z]+-slim@sha256:[0-9a-f]{64}$/m);
    expect(dockerfile).toContain("npm ci ");
    expect(dockerfile).not.toMatch(/npm install|:latest|^ADD |curl|apt-get/m);
  });

  it("ends as an ordinary user and copies no test or secret", () => {
    const lines = readFileSync(join(root, "Dockerfile"), "utf8").split("\n");
    expect(lines.filter((line) => line.startsWith("USER")).at(-1)).toBe("USER 999:999");
    const ignored = readFileSync(join(root, ".dockerignore"), "utf8").split("\n");
    for (const name of [".git", ".causeway", "node_modules", "dist", "test/*"]) {
      expect(ignored).toContain(name);
    }
  });
});
