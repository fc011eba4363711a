import { type Address, parseAddress } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { EMPTY_TRIE_ROOT, type Hash32, hexToBytes, ZERO_HASH } from "../../chain/hex.js";
import { Engine } from "../../node/execution/interpreter/engine.js";
import { BalanceRecorder } from "../../node/state/balance-recorder.js";
import { JournaledState } from "../../node/state/journaled-state.js";
import type { AccountRecord } from "../../node/store/account-record.js";
import { worstCases } from "../bench/worst-gas-cases.js";
const CONTRACT = parseAddress(`0x${"c0".repeat(20)}`);
const CALLER = parseAddress(`0x${"ca".repeat(20)}`);
const GAS = 30_000_000n;
const LIMIT = Number(process.argv[2] ?? 100_000_000);
const out: [number, string][] = [];
for (const item of worstCases()) {
  let best = Infinity,
    used = 0,
    gasUsed = 0n;
  for (let t = 0; t < 3; t++) {
    const accounts = new Map<Address, AccountRecord>();
    const codes = new Map<Hash32, Uint8Array>();
    for (const [address, hex] of new Map<Address, string>([
      [CONTRACT, item.code],
      ...(item.others ?? []),
    ])) {
      const code = hexToBytes(`0x${hex}`);
      const codeHash = keccak256Hex(code);
      codes.set(codeHash, code);
      accounts.set(address, {
        nonce: 1n,
        balanceAtoken: 10n ** 18n,
        codeHash,
        storageRoot: EMPTY_TRIE_ROOT,
      });
    }
    const state = new JournaledState({
      account: (a) => accounts.get(a),
      code: (h) => codes.get(h) ?? new Uint8Array(0),
      storage: () => new Uint8Array(0),
    });
    const engine = new Engine({ chainId: 6940n, state });
    const c = process.cpuUsage();
    const w = performance.now();
    state.checkpoint();
    const r = engine.run(
      {
        from: CALLER,
        to: CONTRACT,
        valueAtoken: 0n,
        data: hexToBytes(`0x${item.data ?? ""}`),
        gasLimit: GAS,
        gasPriceAtoken: 0n,
        accessList: [],
      },
      {
        height: 1000,
        timestampSeconds: 1,
        coinbase: CALLER,
        gasLimit: 600_000_000n,
        mixHash: ZERO_HASH,
        blockHash: () => ZERO_HASH,
      },
      { recorder: new BalanceRecorder(), limitNs: LIMIT },
    );
    state.commit();
    const d = process.cpuUsage(c);
    const ms = (d.user + d.system) / 1000;
    void w;
    used = r.computeNs / 1e6;
    gasUsed = r.gasUsed;
    best = Math.min(best, ms / used);
  }
  out.push([
    best,
    `${best.toFixed(2)}  ${item.name}: ${used.toFixed(0)} ms of units, gas ${gasUsed}`,
  ]);
}
for (const [, line] of out.sort((a, b) => b[0] - a[0])) console.log(line);
