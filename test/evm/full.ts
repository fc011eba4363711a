import { randomBytes } from "node:crypto";
import { parseAddress, type Address } from "../../chain/address.js";
import { bytesToHex, hexToBytes, type Hex } from "../../chain/hex.js";
import { ExecutionChain, testGenesis } from "../helpers/chains/execution-chain.js";
import { commitBlock } from "../../node/store/block-commit.js";
import { BlockExecution } from "../../node/blocks/block-executor.js";
import type { SignedTransaction } from "../../chain/transaction.js";
import { createLocalGenesis, type Genesis } from "../../node/settings/genesis.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import type { GenesisAccount } from "../../node/settings/genesis.js";

const N = Number(process.argv[3] ?? 3000);
const kind = process.argv[2] ?? "erc20";
const plain: Genesis = testGenesis(`0x${"11".repeat(20)}`);
const senders = Array.from({ length: N }, () => bytesToHex(randomBytes(20)) as Address);
const token = parseAddress(`0x${"70".repeat(20)}`);
const src = `// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
import "@openzeppelin/contracts/token/ERC20/ERC20.sol";
contract T is ERC20 { constructor() ERC20("T","T") {} }`;
const solc = createRequire(import.meta.url)("/work/wt/evm/node_modules/solc");
const res = JSON.parse(solc.compile(JSON.stringify({ language: "Solidity", sources: { "T.sol": { content: src } }, settings: { evmVersion: "cancun", optimizer: { enabled: true, runs: 200 }, outputSelection: { "*": { "*": ["evm.deployedBytecode.object"] } } } }), { import: (q: string) => ({ contents: readFileSync(`/work/wt/evm/node_modules/${q}`, "utf8") }) }));
const runtime = `0x${res.contracts["T.sol"].T.evm.deployedBytecode.object}`;
console.log("code bytes", runtime.length / 2 - 1);
const slotOf = (a: Address) => keccak256Hex(hexToBytes(`0x${a.slice(2).padStart(64, "0")}${"0".repeat(64)}`));
const codes: Record<string, string> = {
  // loop: SSTORE slot i := i from calldata start, 100 slots
  sstore: "5f355b80805560010180806064900615600357" ,
};
const genesis: Genesis = { ...plain, alloc: new Map<Address, GenesisAccount>([...plain.alloc, ...senders.map((a): [Address, GenesisAccount] => [a, { balanceAtoken: 10n ** 20n, code: undefined, storage: new Map() }]),
  [token, { balanceAtoken: 0n, code: (kind === "erc20" ? runtime : `0x${codes[kind] ?? "00"}`) as Hex, storage: new Map(kind === "erc20" ? senders.map((a) => [slotOf(a), 10n ** 20n] as const) : []) }]]) };
const chain = await ExecutionChain.open(genesis);
for (let b = 0; b < 6; b++) {
  const txs = senders.map((from, i) => {
    const to = kind === "plain" ? (bytesToHex(randomBytes(20)) as Address) : token;
    const data = kind === "erc20" ? hexToBytes(`0xa9059cbb${randomBytes(20).toString("hex").padStart(64, "0")}${"1".padStart(64, "0")}`) : kind === "plain" ? new Uint8Array(0) : hexToBytes(`0x${((b * N + i) * 100).toString(16).padStart(64, "0")}`);
    const tx: SignedTransaction = { type: 0, chainId: genesis.evmChainId, nonce: BigInt(b), to, valueAtoken: kind === "plain" ? 1n : 0n, data, gasLimit: kind === "plain" ? 21_000n : 3_000_000n, maxFeePerGasAtoken: 1n, maxPriorityFeePerGasAtoken: 1n, accessList: [], raw: randomBytes(150 + data.length), hash: keccak256Hex(randomBytes(32)) } as unknown as SignedTransaction;
    return { tx, from, sdkHash: keccak256Hex(randomBytes(32)) };
  });
  const parent = chain.view.head();
  const parentSupply = chain.stores.blocks.supply(parent.height);
  if (parentSupply === undefined) throw new Error("supply");
  const c = process.cpuUsage(); const w = performance.now();
  const ex = new BlockExecution({ chainId: genesis.evmChainId, params: genesis.params, state: chain.stores.state.readerAt(parent.height), tries: chain.tries, blockHash: (h) => chain.stores.blocks.hashOf(h), monotonicMs: () => performance.now() }, { parent, parentSupply, timeMs: parent.timeMs + 2000, coinbase: chain.coinbase });
  let ns = 0; let n = 0; let gas = 0n;
  for (const t of txs) {
    const o = await ex.add(t, 1e9 - ns);
    if (!o.included) { if (o.code !== "OUT_OF_BLOCK_COMPUTE") console.log(o.code, o.reason, o.cause); break; }
    if (n === 0 && o.receipt.status !== 1) console.log("failed", o.receipt);
    ns += o.computeNs; n++; gas += o.receipt.gasUsed;
  }
  const t1 = process.cpuUsage(c); const w1 = performance.now();
  const executed = await ex.seal();
  const t2 = process.cpuUsage(c); const w2 = performance.now();
  await commitBlock(chain.stores, executed);
  const t3 = process.cpuUsage(c); const w3 = performance.now();
  chain.stores.state.publish(executed.changes); chain.tries.apply(executed.trieWrites); chain.stores.blocks.remember(executed.committed);
  const { block } = executed.committed;
  chain.view.moveHead({ height: block.header.height, hash: block.hash, timeMs: block.timeMs });
  const ms = (u: { user: number; system: number }) => Math.round((u.user + u.system) / 1000);
  console.log(`${kind} block ${b}: ${n} tx, gas ${gas}, units ${(ns / 1e6).toFixed(0)} ms; cpu exec ${ms(t1)} seal ${ms(t2) - ms(t1)} commit ${ms(t3) - ms(t2)} = ${ms(t3)} ms; wall ${(w1 - w).toFixed(0)}+${(w2 - w1).toFixed(0)}+${(w3 - w2).toFixed(0)}; us/tx ${(ms(t3) * 1000 / n).toFixed(1)}`);
}
await chain.close();
