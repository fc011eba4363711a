/**
 * Solidity compilers: those of a folder, named as at binaries.soliditylang.org, and the one of the
 * npm package `solc` where it is installed. Each compiles in a thread that ends afterwards, within
 * bounds of time and memory.
 */
import { readdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { errorCode, errorMessage } from "../../chain/errors.js";
import { refused } from "./refusal.js";

/** One compiler. */
export interface Compiler {
  /** "0.8.24"; its commit, where the file's name tells it: "0.8.24+commit.e11b9ed9". */
  readonly version: string;
  readonly file: string;
}

/** Which contract of an input is wanted. */
export interface CompileTarget {
  /** Undefined where any source may have it. */
  readonly source: string | undefined;
  readonly name: string;
}

/** Places in code, in bytes. */
export interface CodeRange {
  readonly start: number;
  readonly length: number;
}

/** What a compiler made of one contract; codes are hex without 0x, links not filled in. */
export interface CompiledContract {
  readonly source: string;
  readonly name: string;
  /** JSON. */
  readonly abi: string;
  /** JSON; "" where the compiler made none. */
  readonly metadata: string;
  readonly creationCode: string;
  readonly runtimeCode: string;
  /** Places of immutable values by the number that the compiler gave them. */
  readonly immutables: Readonly<Record<string, readonly CodeRange[]>>;
  /** Places of libraries' addresses by source and name. */
  readonly links: Readonly<Record<string, Readonly<Record<string, readonly CodeRange[]>>>>;
}

/** What a compilation answered. */
export interface Compilation {
  /** The compiler's own version, with its commit. */
  readonly version: string;
  readonly errors: readonly string[];
  readonly found: readonly CompiledContract[];
}

/** Bounds of one compilation. */
export interface CompileLimits {
  readonly timeoutMs: number;
  /** Memory of the compiler itself; V8's heap beside it has a bound of its own. */
  readonly memoryBytes: number;
}

type WorkerAnswer =
  | ({ readonly kind: "done" } & Compilation)
  | { readonly kind: "memory" | "not-wasm" }
  | { readonly kind: "failed"; readonly message: string };

/** V8's heap of the thread: the compiler's text, input and output. */
const HEAP_MEGABYTES = 384;

/** Files of the folder that are looked at. */
const MAX_FILES = 1_000;

const FILE_NAME = /^soljson-v(\d+\.\d+\.\d+(?:\+commit\.[0-9a-f]{8})?)\.js$/;
const VERSION = /^v?(\d+\.\d+\.\d+)(?:\+commit\.([0-9a-f]{6,40}))?/;

const WORKER = new URL("./compile-worker.mjs", import.meta.url);

/** All compilers, the newest first. @param folder "" for none; throws no fault of the folder */
export async function listCompilers(folder: string): Promise<readonly Compiler[]> {
  const files = folder === "" ? [] : await filesOf(folder);
  const placed = files.slice(0, MAX_FILES).flatMap((name): Compiler[] => {
    const version = FILE_NAME.exec(name)?.[1];
    return version === undefined ? [] : [{ version, file: join(folder, name) }];
  });
  const bundled = bundledCompiler();
  const all = bundled === undefined ? placed : [bundled, ...placed];
  return all.toSorted((left, right) =>
    right.version.localeCompare(left.version, "en", { numeric: true }),
  );
}

/** The compiler of a version as clients write it, "v0.8.24+commit.e11b9ed9" or "0.8.24". */
export function findCompiler(compilers: readonly Compiler[], asked: string): Compiler | undefined {
  const wanted = VERSION.exec(asked.trim());
  if (wanted === null) return undefined;
  const [, number, commit] = wanted;
  const fitting = compilers.filter(({ version }) => version.split("+")[0] === number);
  const named = fitting.find(({ version }) => isSameVersion(asked, version));
  // One whose name tells no commit may be it: what it says of itself is checked afterwards.
  return (
    (commit === undefined ? fitting[0] : named) ??
    fitting.find(({ version }) => !version.includes("+"))
  );
}

/** Whether a compiler's own version is the one that was asked for, as far as it was told. */
export function isSameVersion(asked: string, actual: string): boolean {
  const [, number, commit] = VERSION.exec(asked.trim()) ?? [];
  const [, actualNumber, actualCommit = ""] = VERSION.exec(actual) ?? [];
  return number === actualNumber && (commit === undefined || actualCommit.startsWith(commit));
}

/** A version without what the compiler was built for: its name in every list of compilers. */
export function releaseOf(version: string): string {
  return version.replace(/\.Emscripten\.clang$/, "");
}

/**
 * Compiles in a thread.
 * @param input standard JSON
 * @throws VerificationRefusal TOO_LONG, TOO_MUCH_MEMORY, NO_COMPILER, COMPILER_FAILED; the signal's reason
 */
export async function compileIn(
  compiler: Compiler,
  input: string,
  target: CompileTarget,
  { timeoutMs, memoryBytes, signal }: CompileLimits & { readonly signal: AbortSignal },
): Promise<Compilation> {
  signal.throwIfAborted();
  const worker = new Worker(WORKER, {
    workerData: { file: compiler.file, input, target, maxMemoryBytes: memoryBytes },
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MEGABYTES },
    env: {},
    argv: [],
    execArgv: [],
    stdout: true,
    stderr: true,
  });
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  try {
    const answer = await new Promise<WorkerAnswer>((resolve, reject) => {
      timer = setTimeout(() => reject(refused("TOO_LONG", `${timeoutMs / 1_000} s`)), timeoutMs);
      onAbort = () => reject(signal.reason as Error);
      signal.addEventListener("abort", onAbort, { once: true });
      worker.once("message", resolve);
      worker.once("error", (error) => {
        const isHeap = errorCode(error) === "ERR_WORKER_OUT_OF_MEMORY";
        reject(refused(isHeap ? "TOO_MUCH_MEMORY" : "COMPILER_FAILED", errorMessage(error)));
      });
      worker.once("exit", (code) => reject(refused("COMPILER_FAILED", `exit code ${code}`)));
    });
    return compilationOf(answer, compiler, memoryBytes);
  } finally {
    clearTimeout(timer);
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
    worker.removeAllListeners();
    // A thread that ends in fault after its answer must not end the process.
    worker.on("error", () => undefined);
    await worker.terminate();
  }
}

function compilationOf(answer: WorkerAnswer, compiler: Compiler, memoryBytes: number): Compilation {
  switch (answer.kind) {
    case "done":
      return answer;
    case "memory":
      throw refused("TOO_MUCH_MEMORY", `${memoryBytes / 1024 / 1024} MiB`);
    case "not-wasm":
      throw refused("NO_COMPILER", `${compiler.version} is no WebAssembly build`);
    default:
      throw refused("COMPILER_FAILED", answer.message);
  }
}

async function filesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch {
    // A folder that is not there has no compilers: the page lists those that there are.
    return [];
  }
}

/** The npm package's, where it is installed: it is none of the kit's own needs. */
function bundledCompiler(): Compiler | undefined {
  const require = createRequire(import.meta.url);
  try {
    const { version }: { version: string } = require("solc/package.json");
    return { version, file: require.resolve("solc/soljson.js") };
  } catch {
    return undefined;
  }
}
