// Compiles the Solidity sources of this folder to contracts/artifacts: predeploys with their code,
// interfaces of precompiled contracts with their address. Run after changing one:
//   node contracts/compile.mjs
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import solc from "solc";

const folder = path.dirname(fileURLToPath(import.meta.url));

/** Sources, by their paths from here. */
function sourceNames() {
  const inside = (name) => fs.readdirSync(path.join(folder, name)).map((file) => `${name}/${file}`);
  const names = [...fs.readdirSync(folder), ...inside("interfaces")];
  return names.filter((name) => name.endsWith(".sol"));
}

/** Compiles every .sol file here and returns { name: { abi, runtimeCode or address } }. */
export function compileContracts() {
  const names = sourceNames();
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(
      names.map((name) => [name, { content: fs.readFileSync(path.join(folder, name), "utf8") }]),
    ),
    settings: {
      evmVersion: "cancun",
      optimizer: { enabled: true, runs: 200 },
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["abi", "devdoc", "evm.deployedBytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const errors = (output.errors ?? []).filter((entry) => entry.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((entry) => entry.formattedMessage).join("\n"));
  const compiled = {};
  for (const contracts of Object.values(output.contracts)) {
    for (const [name, contract] of Object.entries(contracts)) {
      const code = contract.evm.deployedBytecode.object;
      const address = contract.devdoc["custom:address"];
      const place = code === "" ? { address } : { runtimeCode: `0x${code}` };
      compiled[name] = { compiler: solc.version(), abi: contract.abi, ...place };
    }
  }
  return compiled;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, artifact] of Object.entries(compileContracts())) {
    const file = path.join(folder, "artifacts", `${name}.json`);
    fs.writeFileSync(file, `${JSON.stringify(artifact, null, 2)}\n`);
    console.log(`wrote ${file}`);
  }
}
