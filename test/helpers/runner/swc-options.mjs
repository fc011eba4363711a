/** How tests translate TypeScript; the same for jest and for child processes of tests. */
export const swcOptions = {
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
};
