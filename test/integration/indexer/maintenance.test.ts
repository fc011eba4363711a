/** Commands over an index that are given a node which is not the index's. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { rebuildIndex } from "../../../indexer/maintenance/commands.js";
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
});
