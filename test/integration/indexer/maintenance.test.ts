/** Commands over an index that are given a node or tables which are not theirs. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { rebuildIndex, verifyIndex } from "../../../indexer/maintenance/commands.js";
import { INDEX_SCHEMA_VERSION } from "../../../indexer/store/schema.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";

const bob = new Wallet(`0x${"22".repeat(32)}`);

let stage: IndexerStage;

beforeAll(async () => {
  stage = await IndexerStage.open();
  await stage.mine({ to: bob.address, value: 5n });
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
});

afterAll(async () => {
  await stage.close();
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
