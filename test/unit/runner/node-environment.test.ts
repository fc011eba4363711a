/** What tests rely on without naming it: kinds of values are the product's, and a file leaves nothing behind. */
import { describe, expect, it } from "@jest/globals";

const RUNNER = "../../helpers/runner";

interface Environment {
  readonly moduleMocker: {
    spyOn(owner: object, method: string): { mockReturnValue(value: unknown): void };
  };
  setup(): Promise<void>;
  teardown(): Promise<void>;
}

async function environment(): Promise<Environment> {
  const { default: OneRealm } = await import(`${RUNNER}/node-environment.mjs`);
  const projectConfig = {
    globals: {},
    fakeTimers: {},
    testEnvironmentOptions: { globalsCleanup: "off" },
  };
  const context = { console: Object.create(console), testPath: "", docblockPragmas: {} };
  return new OneRealm({ globalConfig: {}, projectConfig }, context);
}

describe("the environment of a test file", () => {
  it("ends with all that its tests put in place of something else", async () => {
    const owner = { word: () => "own" };
    const { console: before } = globalThis;
    process.env["CAUSEWAY_TEST_RUNNER_CHANGED"] = "before";
    process.env["CAUSEWAY_TEST_RUNNER_DELETED"] = "before";
    const own = await environment();
    await own.setup();
    expect(globalThis.console).not.toBe(before);
    own.moduleMocker.spyOn(owner, "word").mockReturnValue("a test's");
    expect(owner.word()).toBe("a test's");
    process.env["CAUSEWAY_TEST_RUNNER_CHANGED"] = "by a test";
    process.env["CAUSEWAY_TEST_RUNNER_NEW"] = "by a test";
    delete process.env["CAUSEWAY_TEST_RUNNER_DELETED"];
    await own.teardown();
    expect(owner.word()).toBe("own");
    expect(globalThis.console).toBe(before);
    const left = Object.entries(process.env).filter(([name]) =>
      name.startsWith("CAUSEWAY_TEST_RUNNER_"),
    );
    expect(Object.fromEntries(left)).toEqual({
      CAUSEWAY_TEST_RUNNER_CHANGED: "before",
      CAUSEWAY_TEST_RUNNER_DELETED: "before",
    });
  });

  it.each([
    ["Object", {}, Object],
    ["Function", () => undefined, Function],
    ["Array", [], Array],
    ["String", "", String],
    ["Number", 0, Number],
    ["Boolean", false, Boolean],
    ["BigInt", 0n, BigInt],
    ["Promise", Promise.resolve(), Promise],
    ["Date", new Date(0), Date],
    ["RegExp", /one/, RegExp],
    ["Map", new Map(), Map],
    ["Set", new Set(), Set],
    ["WeakMap", new WeakMap(), WeakMap],
    ["WeakSet", new WeakSet(), WeakSet],
    ["ArrayBuffer", new ArrayBuffer(0), ArrayBuffer],
    ["DataView", new DataView(new ArrayBuffer(0)), DataView],
    ["Uint8Array", new Uint8Array(0), Uint8Array],
    ["Error", new Error(""), Error],
    ["AggregateError", new AggregateError([]), AggregateError],
    ["TypeError", new TypeError(""), TypeError],
    ["RangeError", new RangeError(""), RangeError],
    ["SyntaxError", new SyntaxError(""), SyntaxError],
    ["URIError", new URIError(""), URIError],
  ])("has the same %s as the product", (_name, value, kind) => {
    expect(value).toEqual(expect.any(kind));
    expect([value]).toEqual([value]);
  });

  it.each([
    ["a list", () => JSON.parse("[1]"), [1]],
    ["bytes", () => Uint8Array.from([1]), Uint8Array.of(1)],
    ["a map", () => new Map([[1, 2]]), new Map([[1, 2]])],
  ])("finds %s equal that the product made", (_name, made, expected) => {
    expect(made()).toStrictEqual(expected);
  });

  it("knows the faults of Node's own functions", () => {
    expect(() => Buffer.alloc(-1)).toThrow(RangeError);
    expect(() => new URL("")).toThrow(TypeError);
    expect(() => JSON.parse("{")).toThrow(SyntaxError);
    expect(() => decodeURIComponent("%")).toThrow(URIError);
  });
});
