/** What package.json promises: packages that are used, test clients apart, and the files of a public project. */
import { describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import path from "node:path";
import { z } from "zod";
import { productSources } from "../helpers/source-tree.js";

const names = z.record(z.string(), z.string());
const manifest = z
  .object({
    bin: names,
    dependencies: names,
    devDependencies: names,
    optionalDependencies: names,
  })
  .parse(JSON.parse(fs.readFileSync("package.json", "utf8")));

/** Programs of the first minute: they install, build and start, before anything is compiled. */
const scripts = fs
  .readdirSync("bin")
  .map((name) => fs.readFileSync(path.join("bin", name), "utf8"));

/** Packages that nobody imports by name, and who needs them. */
const NEEDED_BY: Readonly<Record<string, string>> = {
  // The compiler, run as a program.
  typescript: "bin/compile.mjs",
};

describe("package.json", () => {
  it("has no package for production that nothing uses", () => {
    const used = new Set(productSources().flatMap(({ packages }) => packages));
    const idle = Object.keys(manifest.dependencies).filter((name) => {
      if (name.startsWith("@types/") || used.has(name)) return false;
      const quoted = new RegExp(`["'\`/]${name.replace("/", "\\/")}["'\`/]`);
      const place = NEEDED_BY[name];
      return place === undefined
        ? !scripts.some((text) => quoted.test(text))
        : !fs.readFileSync(place, "utf8").includes(name);
    });
    expect(idle).toEqual([]);
  });

  it("keeps other chains' programs and clients out of production", () => {
    const production = { ...manifest.dependencies, ...manifest.optionalDependencies };
    const clients = ["causeway-test-clients", "hardhat", "ethers", "viem", "web3", "solc"];
    for (const name of clients) {
      expect(production).not.toHaveProperty(name);
      expect(manifest.devDependencies).toHaveProperty(name);
    }
    expect(Object.keys(production).filter((name) => /anvil|foundry|cast$/.test(name))).toEqual([]);
  });

  it("names a command that exists", () => {
    for (const file of Object.values(manifest.bin)) expect(fs.existsSync(file)).toBe(true);
    expect(Object.keys(manifest.bin)).toContain("causeway");
  });
});

describe("the project", () => {
  it.each(["LICENSE", "SECURITY.md", "CONTRIBUTING.md", "README.md", "CHANGELOG.md"])(
    "has %s",
    (file) => {
      expect(fs.readFileSync(file, "utf8").length).toBeGreaterThan(200);
    },
  );
});
