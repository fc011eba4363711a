import { it } from "@jest/globals";
import { ExecutionChain, testGenesis } from "../../test/helpers/execution-chain.js";
import { privateKeyToAddress } from "../../chain/address.js";
import { signLegacy } from "../../chain/transaction.js";
import { bytesToHex } from "../../chain/hex.js";
it("perf", async () => {
  const keys = Array.from({ length: 200 }, (_, i) => {
    const k = new Uint8Array(32).fill(3);
    k[0] = i + 1;
    return k;
  });
  const g0 = testGenesis(privateKeyToAddress(keys[0]!));
  const alloc = new Map(g0.alloc);
  for (const k of keys)
    alloc.set(privateKeyToAddress(k), {
      balanceAtoken: 10n ** 24n,
      code: undefined,
      storage: new Map(),
    });
  const chain = await ExecutionChain.open({ ...g0, alloc, params: { ...g0.params } });
  const nonces = keys.map(() => 0n);
  for (let b = 0; b < 5; b++) {
    const raws: string[] = [];
    for (let i = 0; i < 10000; i++) {
      const s = i % 200;
      const to = ("0x" + (b * 10000 + i).toString(16).padStart(40, "7")) as any;
      raws.push(
        bytesToHex(
          signLegacy(
            {
              chainId: 6940n,
              nonce: nonces[s]!,
              gasPriceAtoken: 25000000n,
              gasLimit: 21000n,
              to,
              valueAtoken: 5n,
              data: new Uint8Array(),
            },
            keys[s]!,
          ),
        ),
      );
      nonces[s]! += 1n;
      nonces[s] = nonces[s]!;
    }
    const t = performance.now();
    const { decodeTransaction, recoverSender } = await import("../../chain/transaction.js");
    const { parseHexBytes } = await import("../../chain/hex.js");
    const txs = raws.map((r) => decodeTransaction(parseHexBytes(r)));
    const t1 = performance.now();
    const froms = txs.map((x) => recoverSender(x));
    const t2 = performance.now();
    const r = await chain.execute(raws);
    const t3 = performance.now();
    const { commitBlock } = await import("../../node/store/block-commit.js");
    await commitBlock(chain.stores, r.executed);
    const t4 = performance.now();
    chain.stores.state.publish(r.executed.changes);
    chain.tries.apply(r.executed.trieWrites);
    const { block } = r.executed.committed;
    chain.view.moveHead({ height: block.header.height, hash: block.hash, timeMs: block.timeMs });
    console.log(
      `txs ${block.transactions.length} decode ${(t1 - t).toFixed(0)} recover ${(t2 - t1).toFixed(0)} execute(incl decode+recover) ${(t3 - t2).toFixed(0)} commit ${(t4 - t3).toFixed(0)} publish ${(performance.now() - t4).toFixed(0)}`,
    );
  }
  await chain.close();
}, 60000);
