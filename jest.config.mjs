/** One project: TypeScript through swc, ES modules, real services started by the global set-up. */
export default {
  testEnvironment: "node",
  extensionsToTreatAsEsm: [".ts"],
  moduleNameMapper: { "^(\\.{1,2}/.*)\\.js$": "$1" },
  testMatch: ["<rootDir>/test/**/*.test.ts"],
  modulePathIgnorePatterns: ["<rootDir>/dist", "<rootDir>/\\.causeway"],
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      {
        jsc: {
          parser: { syntax: "typescript", decorators: true },
          transform: {
            legacyDecorator: true,
            decoratorMetadata: true,
            useDefineForClassFields: false,
          },
          target: "es2023",
        },
        module: { type: "es6" },
        swcrc: false,
        sourceMaps: "inline",
      },
    ],
  },
  workerIdleMemoryLimit: "1GB",
  maxWorkers: 2,
};
