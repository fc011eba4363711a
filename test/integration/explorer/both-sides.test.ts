/** Coins that a Cosmos transaction sent, on every page where an EVM transaction's would be. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { formatEther, getAddress } from "ethers";
import { CUSTOMER, ExplorerStage, type Scene } from "../../helpers/pages/explorer.js";
import { all, type HtmlElement, parseHtml, textOf } from "../../helpers/pages/html.js";
import type { RawReply } from "../../helpers/http/raw-request.js";

/** What the consensus RPC says of a transaction, as far as it is looked at. */
interface MinedTx {
  readonly height: string;
  readonly tx_result: {
    readonly events: readonly {
      readonly type: string;
      readonly attributes: readonly { readonly key: string; readonly value: string }[];
    }[];
  };
}

let stage: ExplorerStage;
let scene: Scene;
let hash: string;
let height: number;
let mined: MinedTx;

async function page(target: string): Promise<{ reply: RawReply; root: HtmlElement; text: string }> {
  const reply = await stage.get(target);
  const root = parseHtml(reply.text);
  const main = all(root, "main")[0];
  if (main === undefined) throw new Error("no main");
  return { reply, root, text: textOf(main) };
}

beforeAll(async () => {
  stage = await ExplorerStage.open(0);
  scene = await stage.play();
  hash = scene.sent;
  const answer = await fetch(`http://127.0.0.1:${26657 + stage.offset}/tx?hash=0x${hash}`);
  mined = ((await answer.json()) as { result: MinedTx }).result;
  height = Number(mined.height);
});

afterAll(async () => {
  await stage.close();
});

describe("coins sent on the Cosmos side", () => {
  it("are found as a deposit: where, when, how often confirmed, what moved", async () => {
    const { reply, text } = await page(`/deposit?tx=${hash.toLowerCase()}`);
    expect(reply.status).toBe(200);
    expect(text).toContain("Carried out: the block is final");
    expect(text).toContain(`${height} · position 0`);
    expect(text).toContain("2/2 · final");
    expect(text).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
    expect(text).toContain(`${getAddress(CUSTOMER)}+3 TOKEN`);
    expect(reply.headers["cache-control"]).toBe("public, max-age=60");
  });

  it("have a page with sender, fee, messages, memo and every coin that moved", async () => {
    const split = mined.tx_result.events.find(({ type }) => type === "fee_burn");
    const coins = (key: string) => {
      const said = split?.attributes.find((one) => one.key === key)?.value ?? "";
      return `${formatEther(BigInt(said.replace("atoken", "")))} TOKEN`;
    };
    const { text } = await page(`/tx/${hash}`);
    expect(text).toContain("2/2 · final");
    expect(text).toContain(getAddress(scene.sender));
    expect(text).toContain("/cosmos.bank.v1beta1.MsgSend");
    expect(text).toContain("<b>rent</b>");
    expect(text).toContain(`Fee${coins("amount")}`);
    expect(text).toContain(`Of the fee burned${coins("burned")}`);
    expect(text).toContain("3 TOKEN");
  });

  it("are among the transactions of their block, and counted", async () => {
    const { root, text } = await page(`/block/${height}`);
    expect(text).toContain("Cosmos transactions (1)");
    expect(all(root, "a").map(({ attributes }) => attributes.get("href"))).toContain(
      `/tx/0x${hash.toLowerCase()}`,
    );
    for (const target of ["/", `/blocks?before=${height + 1}`]) {
      const list = await page(target);
      const cells = all(list.root, "tr")
        .map((row) => all(row, "td").map(textOf))
        .find(([first]) => first === String(height));
      expect({ target, count: cells?.[2] }).toEqual({ target, count: "1" });
    }
  });
});
