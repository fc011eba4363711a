/**
 * The judgement over an exchange of the lab: what customers were promised against the chain, the
 * kit's own reconciliation, and that no process ended by itself.
 */
import { expect } from "@jest/globals";
import { createReconcileChain } from "../../../../rpc-client/reconcile-chain.js";
import { openLedger } from "../../../../ledger/database.js";
import { reconcile } from "../../../../ledger/books/reconcile.js";
import { createEvmClient } from "../../../../rpc-client/evm-client.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import { createJsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { silentLog } from "../../services/ledger.js";
import { until } from "../../until.js";
import { pause } from "../bench.js";
import { assertMoneyKept, type Figures } from "../oracle.js";
import { balanceCall } from "../movements.js";
import type { LabExchange } from "./lab-exchange.js";

/** Looks at a node that is started again, and the time between two. */
const MAX_LOOKS = 60;
const LOOK_AGAIN_MS = 500;

/** Heals every way, waits until all is done, and checks every promise. */
export async function prove(lab: LabExchange): Promise<Figures> {
  await lab.heal();
  for (const { process } of lab.members) await process.untilReady();
  await lab.customers.registerPaid();
  const figures = await assertMoneyKept(lab.customers, lab.witness, lab.startHeight).catch(
    async (error: unknown) => {
      const states = await Promise.all(lab.members.map((member) => lab.readiness(member)));
      const said = lab.members.map(({ process }) => process.output.slice(-2_000)).join("\n---\n");
      throw new Error(`${String(error)}\n${states.join("\n")}\n${said}`);
    },
  );
  await whileChainIsKilled(() => assertBooks(lab));
  await assertSums(lab);
  await assertNonces(lab);
  lab.assertWatched();
  const ends = lab.members.flatMap(({ process }) => process.ownEnds);
  // On a chain that several share it is the next exchange that tells.
  expect([...ends, ...lab.options.chain.ownEnds]).toEqual([]);
  return figures;
}

/** Looks again where there was no node to ask: other exchanges on this chain kill it and start it. */
async function whileChainIsKilled(look: () => Promise<void>): Promise<void> {
  for (let looks = 1; ; looks += 1) {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof NodeFault) || looks === MAX_LOOKS) throw error;
      await pause(LOOK_AGAIN_MS);
    }
  }
}

/** The kit's own reconciliation at the cursor, once it has passed all that is mined now. */
async function assertBooks(lab: LabExchange): Promise<void> {
  const { signal } = new AbortController();
  const rpc = createJsonRpcClient({ url: lab.options.chain.nodeUrl });
  const node = createEvmClient(rpc);
  const identity = {
    chainId: await node.chainId({ signal }),
    genesisHash: await node.genesisHash({ signal }),
  };
  const url = lab.databaseUrl;
  const database = await openLedger({ url, log: silentLog, signal, identity });
  try {
    const head = await node.blockNumber({ signal });
    const isPassed = async () => {
      const [row] = await lab.query<{ height: string }>(`SELECT height FROM watch_cursor`);
      return Number(row?.height ?? -1) >= head;
    };
    await until(isPassed, { timeoutMs: 60_000, what: "the watcher passes the head" });
    const report = await reconcile(database, createReconcileChain(node, signal));
    expect({ ...report, clean: report.clean }).toMatchObject({ clean: true });
  } finally {
    await database.close();
    rpc.close();
  }
}

/** What the ledger has of each asset, added up by the database alone, is what all its addresses have. */
async function assertSums(lab: LabExchange): Promise<void> {
  const { chain, hotWallet, addresses, tokenAddresses, assets, token } = lab.customers;
  const all = [hotWallet, ...addresses.keys(), ...tokenAddresses.keys()];
  for (const asset of assets) {
    const balances = await chain.results(
      all.map((address) => balanceCall({ asset, address }, token)),
    );
    const onChain = balances.reduce<bigint>((sum, balance) => sum + BigInt(String(balance)), 0n);
    const [row] = await lab.query<{ sum: string }>(
      `SELECT coalesce(sum(CASE WHEN debit ~ $1 THEN amount_units ELSE 0 END)
                     - sum(CASE WHEN credit ~ $1 THEN amount_units ELSE 0 END), 0)::text AS sum
         FROM posting WHERE asset = $2`,
      ["^asset:(hot_wallet|wallet:|deposit_addresses)", asset],
    );
    expect({ asset, ...row }).toEqual({ asset, sum: String(onChain) });
  }
}

/** Nonces that were given are those that the chain has used: no gap, none left open. */
async function assertNonces(lab: LabExchange): Promise<void> {
  const { customers } = lab;
  const used = await customers.chain.call("eth_getTransactionCount", customers.hotWallet, "latest");
  const rows = await lab.query<{ next: string; frozen: boolean }>(
    `SELECT w.next_nonce::text AS next, coalesce(f.frozen, false) AS frozen
       FROM hot_wallet w LEFT JOIN signing_freeze f ON f.wallet = w.wallet`,
  );
  expect(rows).toEqual([{ next: String(Number(used)), frozen: false }]);
}
