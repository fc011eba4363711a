/**
 * Jest runs tests in a realm of their own, where errors made by Node itself (ENOENT, ECONNREFUSED)
 * are no `instanceof Error`. In production there is one realm; this environment restores that.
 */
import { TestEnvironment } from "jest-environment-node";

const NAMES = ["Error", "AggregateError", "TypeError", "RangeError", "SyntaxError", "URIError"];

export default class OneRealmEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    const usual = Function.prototype[Symbol.hasInstance];
    for (const name of NAMES) {
      const inner = this.global[name];
      const outer = globalThis[name];
      Object.defineProperty(inner, Symbol.hasInstance, {
        configurable: true,
        value(candidate) {
          // Subclasses inherit this method and keep the usual rule.
          return usual.call(this, candidate) || (this === inner && candidate instanceof outer);
        },
      });
    }
  }
}
