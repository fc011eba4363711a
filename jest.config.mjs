/** One project: TypeScript through swc, ES modules; services are started when a test asks. */
import { readFileSync, readdirSync } from "node:fs";
import { joinedPackages } from "./bin/packages.mjs";
import { swcOptions } from "./test/helpers/swc-options.mjs";

/** Where tests find the packages that the product finds joined; nothing where they cannot be. */
async function joinedModules() {
  const folder = await joinedPackages();
  if (folder === undefined) return {};
  const names = readdirSync(folder).flatMap((name) =>
    name.startsWith("@") ? readdirSync(`${folder}/${name}`).map((part) => `${name}/${part}`) : name,
  );
  return Object.fromEntries(
    names
      .filter((name) => !name.startsWith("."))
      .flatMap((name) => {
        const { exports } = JSON.parse(readFileSync(`${folder}/${name}/package.json`, "utf8"));
        return Object.entries(exports).map(([subpath, file]) => [
          `^${name}${subpath.slice(1)}$`.replaceAll(".", "\\."),
          `${folder}/${name}/${(file.import ?? file).slice(2)}`,
        ]);
      }),
  );
}

export default {
  testEnvironment: "<rootDir>/test/helpers/node-environment.mjs",
  extensionsToTreatAsEsm: [".ts"],
  moduleNameMapper: { ...(await joinedModules()), "^(\\.{1,2}/.*)\\.js$": "$1" },
  testMatch: ["<rootDir>/test/**/*.test.ts"],
  modulePathIgnorePatterns: [
    "<rootDir>/dist",
    "<rootDir>/\\.causeway",
    "<rootDir>/\\.cache/(bench|compiled)",
  ],
  transform: { "^.+\\.ts$": ["@swc/jest", swcOptions] },
  testSequencer: "<rootDir>/test/helpers/longest-first.mjs",
  globalSetup: "<rootDir>/test/helpers/global-setup.mjs",
  globalTeardown: "<rootDir>/test/helpers/global-teardown.mjs",
  // Tells a test that hangs from one that ends; on a busy machine slow is not broken.
  testTimeout: 600_000,
  workerIdleMemoryLimit: "1GB",
  maxWorkers: 2,
};
