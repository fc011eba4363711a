/** Questions that take as long as they may: who asks for something else does not wait for them. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";

/** More than there are connections to the database. */
const SLOW = 24;

let stage: IndexerStage;

beforeAll(async () => {
  stage = await IndexerStage.open();
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  await stage.mine();
  await stage.indexed();
});
afterAll(() => stage.close());

async function ask(path: string): Promise<{ status: number; code: string | undefined }> {
  const response = await fetch(`${stage.url}/v1${path}`);
  const { code } = (await response.json()) as { readonly code?: string };
  return { status: response.status, code };
}

it("leave the index to others", async () => {
  const statement = `/addresses/${stage.faucet.address}/statement`;
  // Whoever reads this table waits for as long as a statement may take.
  await stage.sql.query("BEGIN");
  await stage.sql.query("LOCK TABLE indexer.correction IN ACCESS EXCLUSIVE MODE");
  const slow = Array.from({ length: SLOW }, () => ask(statement));
  for (const one of slow) one.catch(() => undefined);
  for (let turn = 0; turn < 3; turn++) {
    expect(await ask("/blocks/latest")).toEqual({ status: 200, code: undefined });
  }
  for (const { status, code } of await Promise.all(slow)) {
    expect(status).toBe(503);
    expect(["ANSWER_TOO_SLOW", "TOO_MANY_READS"]).toContain(code);
  }
  await stage.sql.query("ROLLBACK");
  expect(await ask(statement)).toEqual({ status: 200, code: undefined });
});
