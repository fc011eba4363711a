/**
 * Jest runs tests in a realm of their own: errors made by Node itself (ENOENT, ECONNREFUSED) are no
 * `instanceof Error` there, and a Date of a test is no `instanceof Date` to a package, which
 * native-runtime.cjs has loaded outside. In production there is one realm; this environment restores that.
 */
import { types } from "node:util";
import { TestEnvironment } from "jest-environment-node";

const ERRORS = ["Error", "AggregateError", "TypeError", "RangeError", "SyntaxError", "URIError"];

/** What is of a kind wherever it was made. */
const KINDS = {
  Array: Array.isArray,
  Date: types.isDate,
  Map: types.isMap,
  Object: (value) => (typeof value === "object" && value !== null) || typeof value === "function",
  Promise: types.isPromise,
  RegExp: types.isRegExp,
  Set: types.isSet,
};

const usual = Function.prototype[Symbol.hasInstance];

/** Whether a class of this name is among those of an object. */
function descendsFrom(candidate, name) {
  if (typeof candidate !== "object" || candidate === null) return false;
  let at = Object.getPrototypeOf(candidate);
  while (at !== null && at.constructor?.name !== name) at = Object.getPrototypeOf(at);
  return at !== null;
}

/** Has `instanceof` of a constructor accept more; its subclasses inherit this and keep the usual rule. */
function accept(constructor, isOne) {
  Object.defineProperty(constructor, Symbol.hasInstance, {
    configurable: true,
    value(candidate) {
      return usual.call(this, candidate) || (this === constructor && isOne(candidate));
    },
  });
}

export default class OneRealmEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    // Packages read the variables of the process; what a test sets ends with its file.
    this.variables = { ...process.env };
    this.global.process.env = process.env;
    for (const name of ERRORS) {
      for (const constructor of [this.global[name], globalThis[name]]) {
        accept(constructor, (candidate) => descendsFrom(candidate, name));
      }
    }
    for (const [name, isOne] of Object.entries(KINDS)) {
      accept(this.global[name], isOne);
      accept(globalThis[name], isOne);
    }
  }

  async teardown() {
    for (const name of Object.keys(process.env)) {
      if (!(name in this.variables)) delete process.env[name];
    }
    Object.assign(process.env, this.variables);
    await super.teardown();
  }
}
