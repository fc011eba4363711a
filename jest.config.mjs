/** One project: TypeScript through swc, ES modules; services are started when a test asks. */
import { inClone, isPlainClone } from "./bin/testing/clone-paths.mjs";
import { swcOptions } from "./test/helpers/runner/swc-options.mjs";

export default {
  testEnvironment: "<rootDir>/test/helpers/runner/node-environment.mjs",
  // What tests leave on jest's own globals goes with the realm; it is not looked for.
  testEnvironmentOptions: { globalsCleanup: "off" },
  runtime: "<rootDir>/test/helpers/runner/native-runtime.cjs",
  extensionsToTreatAsEsm: [".ts"],
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  testRegex: [inClone("/test/.*\\.test\\.ts$")],
  modulePathIgnorePatterns: ["/dist", "/\\.causeway", "/\\.cache"].map(inClone),
  transform: { "^.+\\.ts$": ["@swc/jest", swcOptions] },
  // Not where the tests' own files lie, which end with the run. Jest takes the path of one in the clone for an
  // expression: where it would be none, or another, the cache is jest's usual one.
  ...(isPlainClone && { cacheDirectory: "<rootDir>/.cache/jest" }),
  testSequencer: "<rootDir>/test/helpers/runner/longest-first.mjs",
  globalSetup: "<rootDir>/test/helpers/runner/global-setup.mjs",
  globalTeardown: "<rootDir>/test/helpers/runner/global-teardown.mjs",
  // Tells a test that hangs from one that ends; on a busy machine slow is not broken.
  testTimeout: 600_000,
  workerIdleMemoryLimit: "1GB",
  maxWorkers: 2,
};
