/** Compiles the tests' Solidity sources, each once: what came of it lies in `.cache/`. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import solcPackage from "solc";

/** A compiled contract. */
export interface CompiledContract {
  readonly abi: readonly Record<string, unknown>[];
  readonly bytecode: `0x${string}`;
}

interface Solc {
  version(): string;
  compile(input: string, callbacks: { import(name: string): { contents: string } }): string;
}

const solc: Solc = solcPackage;

interface SolcOutput {
  errors?: { severity: string; formattedMessage: string }[];
  contracts: Record<
    string,
    Record<string, { abi: Record<string, unknown>[]; evm: { bytecode: { object: string } } }>
  >;
}

/**
 * Compiles sources (path -> text) for Cancun; imports of `contracts/` are found in the project, all
 * others in node_modules.
 */
export function compileSolidity(sources: Record<string, string>): Record<string, CompiledContract> {
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(Object.entries(sources).map(([k, content]) => [k, { content }])),
    settings: {
      evmVersion: "cancun",
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const find = (name: string) => ({
    contents: fs.readFileSync(
      path.join(process.cwd(), name.startsWith("contracts/") ? "" : "node_modules", name),
      "utf8",
    ),
  });
  const output = compiled(JSON.stringify(input), find);
  const faults = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (faults.length > 0) throw new Error(faults.map((e) => e.formattedMessage).join("\n"));
  const byName: Record<string, CompiledContract> = {};
  for (const contracts of Object.values(output.contracts)) {
    for (const [name, { abi, evm }] of Object.entries(contracts)) {
      byName[name] = { abi, bytecode: `0x${evm.bytecode.object}` };
    }
  }
  return byName;
}

/** What the compiler makes of an input, kept with the texts that it imported: who changes one compiles anew. */
function compiled(input: string, find: (name: string) => { contents: string }): SolcOutput {
  const key = createHash("sha256").update(`${solc.version()} ${input}`).digest("hex");
  const file = path.join(process.cwd(), ".cache", "solidity", `${key}.json`);
  const kept = readKept(file);
  const isFresh = Object.entries(kept?.imported ?? {}).every(
    ([name, digest]) => digestOf(find(name).contents) === digest,
  );
  if (kept !== undefined && isFresh) return kept.output;
  const imported: Record<string, string> = {};
  const output = JSON.parse(
    solc.compile(input, {
      import(name) {
        const text = find(name);
        imported[name] = digestOf(text.contents);
        return text;
      },
    }),
  ) as SolcOutput;
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const unfinished = `${file}.${process.pid}`;
  fs.writeFileSync(unfinished, JSON.stringify({ imported, output }));
  fs.renameSync(unfinished, file);
  return output;
}

interface Kept {
  /** SHA-256 of each imported text. */
  readonly imported: Readonly<Record<string, string>>;
  readonly output: SolcOutput;
}

function readKept(file: string): Kept | undefined {
  try {
    return JSON.parse(fs.readFileSync(file, "utf8")) as Kept;
  } catch {
    return undefined; // Nobody has compiled it yet.
  }
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** Compiles a file of test/fixtures/contracts. */
export function compileFixture(file: string): Record<string, CompiledContract> {
  const source = path.join(process.cwd(), "test", "fixtures", "contracts", file);
  return compileSolidity({ [file]: fs.readFileSync(source, "utf8") });
}
