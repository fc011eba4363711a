/**
 * Thread that compiles one standard JSON input with one compiler, answers what is needed of the
 * outcome, and ends. Its memory outside V8's heap is bounded here: compilers ask JavaScript for more.
 */
import { readFileSync } from "node:fs";
import { createRequire, Module } from "node:module";
import { parentPort, workerData } from "node:worker_threads";

/** Errors of the compiler that are answered, and characters of each. */
const MAX_ERRORS = 20;
const MAX_ERROR_CHARACTERS = 2_000;

const { file, input, target, maxMemoryBytes } = workerData;
const PAGE_BYTES = 65_536;
let isMemoryExceeded = false;

/** Names that Node and the compilers chose. */
const COMPILE = "_compile";
const COMPILE_NAME = "_solidity_compile";
const VERSION_NAME = "_solidity_version";

const descriptor = Object.getOwnPropertyDescriptor(WebAssembly.Memory.prototype, "grow");
Object.defineProperty(WebAssembly.Memory.prototype, "grow", {
  ...descriptor,
  value: function bounded(pages) {
    if (this.buffer.byteLength + pages * PAGE_BYTES > maxMemoryBytes) {
      isMemoryExceeded = true;
      throw new RangeError("the compiler needs more memory than it may have");
    }
    return Reflect.apply(descriptor.value, this, [pages]);
  },
});

/** The compiler as a module of its own, whatever kind of package its folder is in. */
function load() {
  const text = readFileSync(file, "utf8");
  // Builds of before WebAssembly take memory that nothing here could bound.
  if (text.includes('"use asm"') || text.includes("'use asm'")) return undefined;
  const loaded = new Module(file);
  loaded.filename = file;
  loaded.require = createRequire(file);
  loaded[COMPILE](text, file);
  return loaded.exports;
}

/** Builds of 0.5.0 and later have the first entry, those of 0.4.11 and later the second. */
function compile(compiler) {
  if (COMPILE_NAME in compiler) {
    const call = compiler.cwrap("solidity_compile", "string", ["string", "number", "number"]);
    return call(input, 0, 0);
  }
  return compiler.cwrap("compileStandard", "string", ["string", "number"])(input, 0);
}

function versionOf(compiler) {
  const name = VERSION_NAME in compiler ? "solidity_version" : "version";
  return compiler.cwrap(name, "string", [])();
}

function pick(output) {
  const errors = (Array.isArray(output.errors) ? output.errors : [])
    .filter(({ severity }) => severity === "error")
    .slice(0, MAX_ERRORS)
    .map(({ formattedMessage, message }) =>
      String(formattedMessage ?? message).slice(0, MAX_ERROR_CHARACTERS),
    );
  const found = Object.entries(output.contracts ?? {}).flatMap(([source, contracts]) =>
    Object.entries(contracts)
      .filter(([name]) => name === target.name)
      .filter(() => target.source === undefined || target.source === source)
      .map(([name, { abi, evm, metadata }]) => ({
        source,
        name,
        abi: JSON.stringify(abi ?? []),
        metadata: metadata ?? "",
        creationCode: evm?.bytecode?.object ?? "",
        runtimeCode: evm?.deployedBytecode?.object ?? "",
        immutables: evm?.deployedBytecode?.immutableReferences ?? {},
        links: evm?.deployedBytecode?.linkReferences ?? {},
      })),
  );
  return { errors, found };
}

try {
  const compiler = load();
  if (compiler === undefined) {
    parentPort.postMessage({ kind: "not-wasm" }, []);
  } else {
    const output = JSON.parse(compile(compiler));
    const answer = isMemoryExceeded ? { kind: "memory" } : { kind: "done", ...pick(output) };
    parentPort.postMessage({ ...answer, version: versionOf(compiler) }, []);
  }
} catch (error) {
  const message = String(error?.message ?? error).slice(0, MAX_ERROR_CHARACTERS);
  parentPort.postMessage(isMemoryExceeded ? { kind: "memory" } : { kind: "failed", message }, []);
}
