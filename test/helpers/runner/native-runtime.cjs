/**
 * Jest's runtime, but packages are loaded by Node itself, once per worker, as production loads them. Jest
 * alone would translate, link and run all of their files anew in the realm of each of 350 test files.
 */
const { pathToFileURL } = require("node:url");
const { SyntheticModule } = require("node:vm");
const JestRuntime = require("jest-runtime").default;

// As node/p2p/promise-with-resolvers.ts does in a process of the product: here it only reaches the tests' realm.
if (typeof Promise.withResolvers !== "function") {
  Promise.withResolvers = function withResolvers() {
    const made = {};
    made.promise = new this((resolve, reject) => Object.assign(made, { resolve, reject }));
    return made;
  };
}

/** Names of packages, not of files, data or Node's own modules. */
const PACKAGE = /^(?!node:|data:|file:|[./]|@jest\/globals$)/;

/** Keeps what it began in its module, and breaks when each test file begins it again. */
const BEGUN_ONCE = /[/\\]node_modules[/\\]rustbn-wasm[/\\]/;

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
    const usual = loader.resolveModule.bind(loader);
    const native = new Map();
    loader.resolveModule = async (specifier, from, context) => {
      if (!PACKAGE.test(specifier) || IS_PACKAGE_PATH.test(from)) {
        return usual(specifier, from, context);
      }
      const { shouldMock } = await loader.mockState.shouldMockEsmAsync(from, specifier);
      if (shouldMock) return usual(specifier, from, context);
      const path = await loader.resolution.resolveEsmAsync(from, specifier);
      if (!IS_PACKAGE_PATH.test(path) || BEGUN_ONCE.test(path) || path.endsWith(".json")) {
        return usual(specifier, from, context);
      }
      let made = native.get(path);
      if (made === undefined) {
        made = wrap(path, context);
        native.set(path, made);
      }
      return made;
    };
  }
}

/** A module of the tests' realm with what the package exports. */
async function wrap(path, context) {
  const exported = await import(pathToFileURL(path).href);
  const names = Object.keys(exported);
  const made = new SyntheticModule(
    names,
    function fill() {
      for (const name of names) this.setExport(name, exported[name]);
    },
    { context, identifier: path },
  );
  await made.link(() => undefined);
  await made.evaluate();
  return made;
}

module.exports = { default: NativeRuntime, __esModule: true };
