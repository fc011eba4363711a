/**
 * Jest itself has a realm for each test file; tests and product run in that of the process. What `expect`
 * asks of the kind of a value must not depend on it, nor must what tests change outlive their file.
 */
import { TestEnvironment } from "jest-environment-node";

/** What a language has in each realm anew; of symbols jest keeps its own. */
const KINDS = `
  Object Function Array String Number Boolean BigInt Promise Date RegExp Map Set WeakMap WeakSet
  ArrayBuffer DataView Uint8Array Error AggregateError TypeError RangeError SyntaxError URIError
`
  .trim()
  .split(/\s+/);

export default class OneRealmEnvironment extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    // Timers are faked where tests and product have them.
    const { constructor: FakeTimers } = this.fakeTimersModern;
    this.fakeTimersModern = new FakeTimers({ config: config.projectConfig, global: globalThis });
  }

  async setup() {
    await super.setup();
    this.variables = { ...process.env };
    this.console = globalThis.console;
    globalThis.console = this.global.console;
    for (const name of KINDS) this.global[name] = globalThis[name];
  }

  async teardown() {
    this.moduleMocker.restoreAllMocks();
    globalThis.console = this.console;
    for (const name of Object.keys(process.env)) {
      if (!(name in this.variables)) delete process.env[name];
    }
    Object.assign(process.env, this.variables);
    await super.teardown();
  }
}
