/** Tokens that moved, of every standard, as transactions and deposits show them. */
import { describe, expect, it } from "@jest/globals";
import { AbiCoder, id, zeroPadValue } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { type Hash32, type Hex, parseHash32 } from "../../../../chain/hex.js";
import { transfersContent } from "../../../../explorer/pages/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { tokenTable } from "../../../../explorer/pages/moves.js";
import { textsOf } from "../../../../explorer/text/catalogue.js";
import { tokensMoved } from "../../../../rpc-client/indexing/token-moves.js";
import { el, renderDocument } from "../../../../web/html/element.js";
import { all, parseHtml, textOf } from "../../../helpers/pages/html.js";
import { shownContent } from "../../../helpers/pages/explorer-page.js";

const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const LISTED = parseAddress(`0x${"71".repeat(20)}`);
const [ALICE, BOB] = [`0x${"a1".repeat(20)}`, `0x${"b0".repeat(20)}`];
const ZERO = `0x${"00".repeat(20)}`;
const coder = AbiCoder.defaultAbiCoder();
const word = (account: string | undefined): Hash32 =>
  parseHash32(zeroPadValue(account ?? ZERO, 32));

function log(signature: string, topics: readonly (string | bigint)[], data: string) {
  const words = topics.map((topic) =>
    typeof topic === "string" ? word(topic) : parseHash32(coder.encode(["uint256"], [topic])),
  );
  return { address: TOKEN, topics: [parseHash32(id(signature)), ...words], data: data as Hex };
}

const units = (...values: bigint[]) =>
  coder.encode(
    values.map(() => "uint256"),
    values,
  );
const lists = (...values: bigint[][]) => coder.encode(["uint256[]", "uint256[]"], values);

const TRANSFER = "Transfer(address,address,uint256)";
const SINGLE = "TransferSingle(address,address,address,uint256,uint256)";
const BATCH = "TransferBatch(address,address,address,uint256[],uint256[])";

function rowsOf(logs: Parameters<typeof tokensMoved>[0]): string[][] {
  const tokens = new Map([
    [LISTED, { symbol: "GOLD", decimals: 6, contractAddress: LISTED, currencySymbol: "GOLD" }],
  ]);
  const context = { tokens } as unknown as PageContext;
  const table = tokenTable(context, tokensMoved(logs, 0), textsOf("en"), false);
  const { root } = shownContent(table);
  return all(root, "tr")
    .slice(1)
    .map((row) => all(row, "td").map(textOf))
    .map(([, from = "", to = "", amount = ""]) => [from.slice(0, 6), to.slice(0, 6), amount]);
}

describe("transfers of an index", () => {
  it("say in what they are counted, where nobody vouches for a token's decimals", () => {
    const tokens = new Map([
      [LISTED, { symbol: "GOLD", decimals: 6, contractAddress: LISTED, currencySymbol: "GOLD" }],
    ]);
    const context = { tokens } as unknown as PageContext;
    const common = {
      height: 7,
      timestampSeconds: 1,
      hash: undefined,
      kind: "erc20",
      from: parseAddress(ALICE),
      to: parseAddress(BOB),
      tokenId: undefined,
    };
    const items = [TOKEN, LISTED, undefined].map((contract) => ({
      ...common,
      contract,
      units: 1_500_000n,
    }));
    const index = { indexedHeight: 9, indexedHash: undefined, isAhead: false };
    const found = { items, next: undefined, ...index };
    const root = parseHtml(
      renderDocument(el("main", {}, transfersContent(context, found, textsOf("en")))),
    );
    const amounts = all(root, "tr")
      .slice(1)
      .map((row) => all(row, "td").map(textOf).at(-1));
    expect(amounts).toEqual([
      expect.stringMatching(/^1500000 units 0x7070/),
      "1.5 GOLD",
      "0.0000000000015 TOKEN",
    ]);
  });
});

describe("tokens that moved", () => {
  it("are shown with their ids, whatever standard they are of", () => {
    const rows = rowsOf([
      log(TRANSFER, [ALICE ?? "", BOB ?? ""], units(2_500_000n)),
      { ...log(TRANSFER, [ALICE ?? "", BOB ?? ""], units(2_500_000n)), address: LISTED },
      log(TRANSFER, [ALICE ?? "", BOB ?? "", 7n], "0x"),
      log(SINGLE, [ALICE ?? "", ALICE ?? "", BOB ?? ""], units(9n, 20n)),
      log(BATCH, [ALICE ?? "", ALICE ?? "", BOB ?? ""], lists([1n, 2n], [1n, 30n])),
      log("Deposit(address,uint256)", [BOB ?? ""], units(5n)),
      log(TRANSFER, [ALICE ?? "", ZERO], units(3n)),
      log("Deposit(address,uint256)", [ZERO], units(5n)),
      log("Approval(address,address,uint256)", [ALICE ?? "", BOB ?? ""], units(3n)),
    ]);
    expect(rows).toEqual([
      ["0xA1A1", "0xB0B0", "2500000 units"],
      ["0xA1A1", "0xB0B0", "2.5 GOLD"],
      ["0xA1A1", "0xB0B0", "#7"],
      ["0xA1A1", "0xB0B0", "20 × #9"],
      ["0xA1A1", "0xB0B0", "#1"],
      ["0xA1A1", "0xB0B0", "30 × #2"],
      ["newly ", "0xB0B0", "5 units"],
      ["0xA1A1", "ceased", "3 units"],
    ]);
  });

  it("are shown twice where a withdrawal and as much sent to nobody may be one movement, and it is said", () => {
    const WITHDRAWAL = "Withdrawal(address,uint256)";
    const echo = [
      log(WITHDRAWAL, [BOB ?? ""], units(3n)),
      log(TRANSFER, [BOB ?? "", ZERO], units(3n)),
    ];
    const burned = ["0xB0B0", "ceased"];
    expect(rowsOf(echo)).toEqual([
      [...burned, "3 units perhaps the same as the equal transfer here"],
      [...burned, "3 units"],
    ]);
    // What comes alone says that none of this contract's is told by a Transfer as well.
    const alone = log(WITHDRAWAL, [BOB ?? ""], units(2n));
    expect(rowsOf([...echo, alone])).toEqual([
      [...burned, "3 units"],
      [...burned, "3 units"],
      [...burned, "2 units"],
    ]);
  });
});
