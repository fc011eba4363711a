/**
 * Jest's runtime, but test files run in the realm of the process, and what they import of the product and of
 * packages is loaded once per worker (kept-modules.cjs). Only jest itself has a realm for each file.
 */
const JestRuntime = require("jest-runtime").default;
const { isProduct, keepPackage, keepProduct, transformed } = require("./kept-modules.cjs");

// As node/p2p/promise-with-resolvers.ts does in a process of the product: jest's environments copy it.
if (typeof Promise.withResolvers !== "function") {
  Promise.withResolvers = function withResolvers() {
    const made = {};
    made.promise = new this((resolve, reject) => Object.assign(made, { resolve, reject }));
    return made;
  };
}

/** Names of packages, not of files, data or Node's own modules. */
const PACKAGE = /^(?!node:|data:|file:|[./]|@jest\/globals$)/;

const IS_PACKAGE_PATH = /[/\\]node_modules[/\\]/;

/**
 * Stands in for Node's store of the same name, by which jest tells tests that run at once apart: it makes
 * every promise of a worker dearer, and the tests of a file run one after the other.
 */
class OneTestAtATime {
  #store;

  getStore() {
    return this.#store;
  }

  run(store, work) {
    const former = this.#store;
    this.#store = store;
    const restore = () => {
      this.#store = former;
    };
    const result = work();
    if (typeof result?.finally === "function") return result.finally(restore);
    restore();
    return result;
  }
}

const HOOKS = /^(node:)?async_hooks$/;

/** What jest's transformer is told of a module. */
const OF_A_MODULE = {
  isInternalModule: false,
  supportsDynamicImport: true,
  supportsExportNamespaceFrom: true,
  supportsStaticESM: true,
  supportsTopLevelAwait: true,
};

class NativeRuntime extends JestRuntime {
  constructor(...given) {
    super(...given);
    const core = this.coreModule;
    const requireCore = core.require.bind(core);
    core.require = (name) =>
      HOOKS.test(name)
        ? { ...requireCore(name), AsyncLocalStorage: OneTestAtATime }
        : requireCore(name);
    const loader = this.esmLoader;
    // Without one, a module runs in the realm of the process.
    loader.getContext = () => undefined;
    // Newer versions of Node would load a graph by another way, past `resolveModule`.
    loader.resolution.hasDistinctAsyncResolver = () => true;
    const { transformCache } = loader;
    for (const [file, entry] of transformed) transformCache.transforms.set(file, entry);
    const transform = (file) => {
      const code = transformCache.transform(file, OF_A_MODULE);
      return { code, entry: transformCache.transforms.get(file) };
    };
    // A test file that asks for modules of its own gets the product's, too.
    let isAnew = false;
    this.resetModules = () => {
      isAnew = true;
      super.resetModules();
    };
    const usual = loader.resolveModule.bind(loader);
    loader.resolveModule = async (specifier, from, context) => {
      const isFile = /^[./]/.test(specifier);
      const isUsual = isFile ? isAnew : !PACKAGE.test(specifier);
      if (isUsual || IS_PACKAGE_PATH.test(from)) return usual(specifier, from, context);
      const { shouldMock } = await loader.mockState.shouldMockEsmAsync(from, specifier);
      if (shouldMock) return usual(specifier, from, context);
      const file = await loader.resolution.resolveEsmAsync(from, specifier);
      if (isProduct(file)) return keepProduct(file, transform);
      const isPackage = IS_PACKAGE_PATH.test(file) && !file.endsWith(".json");
      return isPackage ? keepPackage(file) : usual(specifier, from, context);
    };
  }
}

module.exports = { default: NativeRuntime, __esModule: true };
