/** An index on its first way, and commands over one that are given a node or tables which are not theirs. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import {
  type MaintenanceProgress,
  rebuildIndex,
  verifyIndex,
} from "../../../indexer/maintenance/commands.js";
import { openTables } from "../../../indexer/store/progress.js";
import { INDEX_SCHEMA_VERSION, LIVE_SCHEMA } from "../../../indexer/store/schema.js";
import { createEvmClient } from "../../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { openSqlSession } from "../../../runtime/sql/sql-session.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { nodeBehind } from "../../helpers/indexer/node-behind.js";
import { freePort } from "../../helpers/ports.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

const bob = new Wallet(`0x${"22".repeat(32)}`);

let stage: IndexerStage;

beforeAll(async () => {
  stage = await IndexerStage.open();
  await stage.mine({ to: bob.address, value: 5n });
});

afterAll(async () => {
  await stage.close();
});

describe("an index at its first head", () => {
  it("is not ready before the indexes are there that reads need", async () => {
    const rpc = createJsonRpcClient({ url: stage.chain.url, timeoutMs: 240_000 });
    const genesisHash = await createEvmClient(rpc).genesisHash(stage.commandOptions());
    rpc.close();
    const url = stage.databaseUrl;
    const maker = await openSqlSession({ url, applicationName: "test", log: silentLog });
    await maker.transaction((tx) => openTables(tx, LIVE_SCHEMA, { chainId: 6940n, genesisHash }));
    await maker.close();
    // Rows may come, and the index that is made last may not.
    await stage.sql.query("BEGIN; LOCK TABLE indexer.liquidity IN ROW EXCLUSIVE MODE");
    const port = await freePort();
    stage.url = `http://127.0.0.1:${port}`;
    stage.launch(port);
    const readiness = async () => {
      const reply = await fetch(`${stage.url}/ready`);
      return { status: reply.status, text: await reply.text() };
    };
    try {
      await until(
        async () => {
          const answer = await stage.get("/status").catch(() => undefined);
          return answer?.meta.indexedHeight === stage.height;
        },
        { timeoutMs: 30_000, what: "the head is reached" },
      );
      const text = expect.stringContaining("blocks are left of the first way to the head");
      expect(await readiness()).toEqual({ status: 503, text });
      const { status } = await stage.get("/status");
      expect(status).toMatchObject({ state: "behind", reason: text });
      const verifying = verifyIndex(stage.commandOptions());
      await expect(verifying).rejects.toMatchObject({ code: "NO_INDEX" });
    } finally {
      await stage.sql.query("COMMIT");
    }
    await stage.indexed();
    await until(async () => (await readiness()).status === 200, { timeoutMs: 30_000 });
    expect((await stage.get("/status")).status).toMatchObject({ state: "following", reason: null });
  });
});

describe("commands that are given what is not theirs", () => {
  /** All that could have been changed: which tables are live, and when balances were looked at. */
  const touched = async () => {
    const { rows } = await stage.sql.query(
      `SELECT (SELECT 'indexer.progress'::regclass::oid) AS tables,
         to_regclass('indexer_rebuild.progress') AS rebuild,
         (SELECT count(*) FROM indexer.balance WHERE checked_at IS NULL) AS unchecked`,
    );
    return rows[0];
  };

  beforeAll(async () => {
    await stage.indexed();
    await stage.stopIndexers();
  });

  it("put no chain of another network in the place of the one that is indexed", async () => {
    const before = await touched();
    const options = { ...stage.commandOptions(), evmChainId: 6941n };
    await expect(rebuildIndex(options)).rejects.toMatchObject({ code: "WRONG_NETWORK" });
    expect(await touched()).toEqual(before);
  });

  it("hold no index against a node of another network or chain", async () => {
    const other = await ServedChain.open(testGenesis(bob.address));
    try {
      const before = await touched();
      for (const [change, code] of [
        [{ evmChainId: 6941n }, "WRONG_NETWORK"],
        [{ nodeUrl: other.url }, "FOREIGN_INDEX"],
      ] as const) {
        const options = { ...stage.commandOptions(), ...change };
        await expect(verifyIndex(options)).rejects.toMatchObject({ code });
      }
      expect(await touched()).toEqual(before);
    } finally {
      await other.close();
    }
  });

  it("put no shorter index of a late node in the place of the one that has more of the chain", async () => {
    const before = await touched();
    // As if the live one had been made with a block that this node does not have yet.
    await stage.sql.query(
      `CREATE TABLE kept AS SELECT * FROM indexer.progress;
       INSERT INTO indexer.block SELECT height + 1, sha256(hash), hash, time, proposer, gas_used, gas_limit,
         transactions, size_bytes, minted, burned, fees, total_minted, total_burned
         FROM indexer.block WHERE height = (SELECT height FROM indexer.progress);
       UPDATE indexer.progress SET height = height + 1, hash = sha256(hash)`,
    );
    const top = stage.height;
    let waits = 0;
    const onProgress = ({ height, nodeHeight }: MaintenanceProgress) => {
      waits += height === top && nodeHeight === top ? 1 : 0;
    };
    const ending = new AbortController();
    const { signal } = ending;
    const made = rebuildIndex({ ...stage.commandOptions(), onProgress, signal });
    const stopped = expect(made).rejects.toThrow();
    // The last block and the last look tell it as well.
    await until(() => waits > 5, { timeoutMs: 60_000, what: "the new index waits for the node" });
    ending.abort();
    await stopped;
    const { tables } = await touched();
    expect(tables).toBe(before.tables);
    await stage.sql.query(
      `UPDATE indexer.progress p SET height = k.height, hash = k.hash FROM kept k;
       DELETE FROM indexer.block b USING indexer.progress p WHERE b.height > p.height;
       DROP TABLE kept; DROP SCHEMA indexer_rebuild CASCADE`,
    );
  });

  it.each([
    ["a later", INDEX_SCHEMA_VERSION + 1, "NEWER_INDEX"],
    ["an earlier", INDEX_SCHEMA_VERSION - 1, "OLDER_INDEX"],
  ])("change nothing in tables of %s release", async (_which, version, code) => {
    const before = await touched();
    const set = "UPDATE indexer.progress SET schema_version = $1";
    await stage.sql.query(set, [version]);
    try {
      await expect(verifyIndex(stage.commandOptions())).rejects.toMatchObject({ code });
      expect(await touched()).toEqual(before);
    } finally {
      await stage.sql.query(set, [INDEX_SCHEMA_VERSION]);
    }
  });
});

describe("a verification that takes longer than many blocks", () => {
  it("goes on however often a batch came before its answer, as long as it gets on itself", async () => {
    await stage.sql.query("CREATE TABLE kept AS SELECT * FROM indexer.progress");
    let [moves, rounds] = [0, 0];
    const busy = await nodeBehind(stage.chain.url, async (request) => {
      if (!request.includes("eth_getBalance")) return;
      // Twenty batches, each of one block, and then a round that none comes before.
      if (++rounds % 21 > 0 && moves < 110) {
        moves += 1;
        await stage.sql.query("UPDATE indexer.progress SET height = height + 1");
      } else if (moves < 110) {
        // Which is not the last one: a balance is there that it does not look at.
        await stage.sql.query(
          `INSERT INTO indexer.balance (address, asset, token_id, amount, method, updated_at)
           VALUES (decode(lpad(to_hex($1::integer), 40, 'e'), 'hex'), '', -1, 0, 'journal', 0)`,
          [rounds],
        );
      }
    });
    try {
      const looks: number[] = [];
      const options = {
        ...stage.commandOptions(busy.url),
        onProgress: (progress: MaintenanceProgress) => void looks.push(progress.looks),
      };
      const report = await verifyIndex(options);
      expect(report).toMatchObject({ corrected: 0 });
      // Rounds that a batch came before have looked at nothing.
      expect(looks.length).toBeGreaterThan(1);
      expect(looks).toEqual(looks.toSorted((left, right) => left - right));
      expect(moves).toBe(110);
    } finally {
      await busy.close();
      await stage.sql.query(
        `UPDATE indexer.progress p SET height = k.height FROM kept k;
         DROP TABLE kept;
         DELETE FROM indexer.balance WHERE updated_at = 0 AND amount = 0`,
      );
    }
  });
});
