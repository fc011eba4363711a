/**
 * Solidity's standard JSON input as strangers send it: parsed, bounded, and made anew from the parts
 * that decide about code, with the output that is wanted here. Source: Solidity's documentation,
 * "Compiler Input and Output JSON Description".
 */
import { parseJsonBody } from "../../runtime/http/http-body.js";
import type { CompileTarget } from "./compilers.js";
import { refused } from "./refusal.js";

/** An input that can be compiled. */
export interface StandardInput {
  /** Texts of the source files, by their paths. */
  readonly sources: Readonly<Record<string, { readonly content: string }>>;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Sources of one input. */
const MAX_SOURCES = 1_000;

/** Characters of a source's path and of a contract's name. */
const MAX_PATH = 400;

/**
 * Settings that are passed on. The model checker (hours of work), the output and where to stop
 * are left out; what else there is would not change code either.
 */
const SETTINGS = [
  "remappings",
  "optimizer",
  "evmVersion",
  "viaIR",
  "debug",
  "metadata",
  "libraries",
] as const;

const NAME = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** What the compiler is asked for. */
const OUTPUT = [
  "abi",
  "metadata",
  "evm.bytecode.object",
  "evm.deployedBytecode.object",
  "evm.deployedBytecode.immutableReferences",
  "evm.deployedBytecode.linkReferences",
];

/** Reads an input; also in double braces, as explorers give them back. @throws BAD_INPUT */
export function parseStandardInput(text: string): StandardInput {
  const trimmed = text.trim();
  const isWrapped = trimmed.startsWith("{{") && trimmed.endsWith("}}");
  const input = objectOf(readJson(isWrapped ? trimmed.slice(1, -1) : trimmed), "the input");
  if (input["language"] !== "Solidity") throw refused("BAD_INPUT", "language must be Solidity");
  const given = Object.entries(objectOf(input["sources"], "sources"));
  if (given.length === 0 || given.length > MAX_SOURCES) {
    throw refused("BAD_INPUT", `sources must be 1 to ${MAX_SOURCES}`);
  }
  const sources = Object.fromEntries(
    given.map(([path, source]) => [path, readSource(path, source)]),
  );
  const settings = objectOf(input["settings"] ?? {}, "settings");
  return {
    sources,
    settings: Object.fromEntries(
      SETTINGS.flatMap((name) => (name in settings ? [[name, settings[name]]] : [])),
    ),
  };
}

/** "Token" or "Token.sol:Token". @throws BAD_INPUT */
export function parseTarget(text: string): CompileTarget {
  const trimmed = text.trim();
  const colon = trimmed.lastIndexOf(":");
  const name = trimmed.slice(colon + 1);
  if (!NAME.test(name) || trimmed.length > 2 * MAX_PATH) {
    throw refused("BAD_INPUT", 'the contract\'s name must be "Name" or "path.sol:Name"');
  }
  return { source: colon < 0 ? undefined : trimmed.slice(0, colon), name };
}

/** Whether the compiler writes the hash of the metadata behind the code: it can be told not to. */
export function hasTail({ settings }: Pick<StandardInput, "settings">): boolean {
  const metadata = settings["metadata"];
  return Reflect.get(Object(metadata), "appendCBOR") !== false;
}

/** The input as the compiler gets it. */
export function compilerInput({ sources, settings }: StandardInput, target: CompileTarget): string {
  const outputSelection = { [target.source ?? "*"]: { [target.name]: OUTPUT } };
  return JSON.stringify({
    language: "Solidity",
    sources,
    settings: { ...settings, outputSelection },
  });
}

/** The input with some of its sources alone. */
export function withSources(input: StandardInput, paths: ReadonlySet<string>): StandardInput {
  const sources = Object.entries(input.sources).filter(([path]) => paths.has(path));
  return { ...input, sources: Object.fromEntries(sources) };
}

/** The input as readers get it. */
export function publishedInput({ sources, settings }: StandardInput): unknown {
  return { language: "Solidity", sources, settings };
}

function readSource(path: string, source: unknown): { readonly content: string } {
  if (path.length > MAX_PATH) throw refused("BAD_INPUT", "a source's path is too long");
  const { content } = objectOf(source, "a source");
  if (typeof content !== "string") {
    throw refused("BAD_INPUT", `${path} has no content: sources are sent whole, not as URLs`);
  }
  return { content };
}

function readJson(text: string): unknown {
  try {
    return parseJsonBody(Buffer.from(text, "utf8"));
  } catch {
    throw refused("BAD_INPUT", "this is not standard JSON input");
  }
}

function objectOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw refused("BAD_INPUT", `${what} must be an object`);
  }
  return value as Readonly<Record<string, unknown>>;
}
