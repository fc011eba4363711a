/** Compiles the tests' Solidity sources once per file and run. */
import fs from "node:fs";
import path from "node:path";
import solcPackage from "solc";

/** A compiled contract. */
export interface CompiledContract {
  readonly abi: readonly Record<string, unknown>[];
  readonly bytecode: `0x${string}`;
}

interface Solc {
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
  const output: SolcOutput = JSON.parse(solc.compile(JSON.stringify(input), { import: find }));
  const faults = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (faults.length > 0) throw new Error(faults.map((e) => e.formattedMessage).join("\n"));
  const compiled: Record<string, CompiledContract> = {};
  for (const contracts of Object.values(output.contracts)) {
    for (const [name, { abi, evm }] of Object.entries(contracts)) {
      compiled[name] = { abi, bytecode: `0x${evm.bytecode.object}` };
    }
  }
  return compiled;
}

/** Compiles a file of test/fixtures/contracts. */
export function compileFixture(file: string): Record<string, CompiledContract> {
  const source = path.join(process.cwd(), "test", "fixtures", "contracts", file);
  return compileSolidity({ [file]: fs.readFileSync(source, "utf8") });
}
