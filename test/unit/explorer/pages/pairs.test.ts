/** Pairs as pages show them: prices in whole tokens, and whom nobody vouches for said so. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AbiCoder, parseUnits } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { isPrice, shiftPoint, shownPrice } from "../../../../explorer/decode/prices.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { pairRoutes } from "../../../../explorer/pages/pairs.js";
import { IndexerSource } from "../../../../explorer/sources/indexer-source.js";
import { all, textOf } from "../../../helpers/pages/html.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const [GOOD, FALSE, TOKEN0, TOKEN1] = ["a1", "a2", "b0", "b1"].map((byte) =>
  parseAddress(`0x${byte.repeat(20)}`),
);
/** A coin of 18 decimals, and dollars of 6: one coin for 0.000012 dollars. */
const DECIMALS = [18, 6] as const;

let server: Server;
let context: PageContext;
let decimals: readonly (number | null)[] = DECIMALS;
/** Of the indexer's newest block, where it says so. */
let indexedHash: string | undefined;

function pairJson(address: string | undefined, isConfirmed: boolean) {
  const side = (token: string | undefined, index: number) => ({
    address: token,
    symbol: "CLAIM",
    decimals: decimals[index],
  });
  return {
    address,
    factory: address,
    token0: side(TOKEN0, 0),
    token1: side(TOKEN1, 1),
    reserve0: "1000000000000000000",
    reserve1: "12",
    price0: "0.000012",
    price1: "83333.333333333333333333",
    swaps: 17,
    volume0Day: "5",
    volume1Day: "6",
    isConfirmed,
  };
}

/** Base units of token1 for one of token0, as the indexer gives them. */
const CANDLE = {
  time: "2026-01-05T00:00:00.000Z",
  open: "0.000000000000000012",
  high: "0.0000000000000000125",
  low: "0.000000000000000011999999999999999999",
  close: "0.000000000000000012345678901234567899",
};

beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://indexer");
    const meta = { indexedHeight: 9, indexedHash };
    const answers: Record<string, unknown> = {
      "/v1/dex/pairs": { meta, items: [pairJson(GOOD, true), pairJson(FALSE, false)], next: null },
      [`/v1/dex/pairs/${GOOD}`]: { meta, pair: pairJson(GOOD, true) },
      [`/v1/dex/pairs/${FALSE}`]: { meta, pair: pairJson(FALSE, false) },
      [`/v1/dex/pairs/${GOOD}/candles`]: { meta, items: [CANDLE], next: null },
    };
    const found = answers[pathname];
    response.statusCode = found === undefined ? 404 : 200;
    response.end(JSON.stringify(found ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const coder = AbiCoder.defaultAbiCoder();
  const answers: Record<string, string> = {
    "0x0dfe1681": coder.encode(["address"], [TOKEN0]),
    "0xd21220a7": coder.encode(["address"], [TOKEN1]),
    "0x0902f1ac": coder.encode(["uint112", "uint112", "uint32"], [10n ** 18n, 12n, 1]),
  };
  const evm = { call: ({ data }: { data: string }) => Promise.resolve(answers[data]) };
  context = {
    chain: { evm },
    indexer: new IndexerSource({ url, timeoutMs: 10_000 }),
    tokens: new Map(),
  } as unknown as PageContext;
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function open(path: string, parameter = "", asked = context) {
  const route = pairRoutes(asked).find((one) => one.path === path);
  const page = await openPage(route, { parameter });
  const { root } = shownContent(page.content);
  return { root, text: textOf(root) };
}

describe("pairs", () => {
  it("are told from contracts that only say that they are some", async () => {
    const { root } = await open("/pairs");
    const rows = all(root, "tr").slice(1).map(textOf);
    expect(rows.map((row) => row.includes("not confirmed"))).toEqual([false, true]);
    expect((await open("/pair", GOOD)).text).not.toContain("No factory has this contract");
    for (const other of [FALSE, TOKEN0]) {
      expect((await open("/pair", other)).text).toContain("No factory has this contract");
    }
  });

  it("are vouched for by nobody where the indexer does not answer or has another chain", async () => {
    const gone = createServer();
    await new Promise<void>((resolve) => gone.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`;
    await new Promise((resolve) => gone.close(resolve));
    const silent = { ...context, indexer: new IndexerSource({ url, timeoutMs: 10_000 }) };
    const hashAt = () => Promise.resolve(`0x${"02".repeat(32)}`);
    const chain = { evm: context.chain.evm, hashAt };
    const other = { ...context, chain } as unknown as PageContext;
    for (const [asked, why] of [
      [silent, "The indexer does not answer"],
      [other, "The indexer has other blocks than the node"],
    ] as const) {
      indexedHash = `0x${"01".repeat(32)}`;
      const { text } = await open("/pair", GOOD, asked);
      indexedHash = undefined;
      expect(text).toContain(why);
      expect(text).toContain("Without the indexer it is not known");
      expect(text).not.toContain("No factory has this contract");
    }
    expect((await open("/pair", GOOD)).text).not.toContain("Without the indexer");
  });

  it("have candles in whole tokens, exactly, where the decimals are known", async () => {
    const { root, text } = await open("/pair", GOOD);
    const cells = all(root, "td").map(textOf);
    expect(cells.slice(1)).toEqual([
      "0.000012",
      "0.0000125",
      "0.0000119999999999",
      "0.0000123456789012",
    ]);
    expect(text).toContain("in whole tokens");
    expect(text).toContain("Price: token 1 for one token 00.000012");
    expect(text).toContain("Swaps17");
    decimals = [18, null];
    const unknown = await open("/pair", GOOD);
    decimals = DECIMALS;
    expect(all(unknown.root, "td").map(textOf)[1]).toBe("0.000000000000000012");
    expect(unknown.text).toContain("in the smallest units of both");
  });
});

describe("a price", () => {
  it("moves its point without losing a digit", () => {
    for (const [price, places, moved] of [
      ["1", 3, "1000"],
      ["1.5", 0, "1.5"],
      ["1.5", 1, "15"],
      ["0.0015", 3, "1.5"],
      ["0.0015", 12, "1500000000"],
      ["1500", -3, "1.5"],
      ["1500", -6, "0.0015"],
      ["0", 12, "0"],
      ["0", -12, "0"],
      [
        "123456789012345678901234567890.123456789",
        -30,
        "0.123456789012345678901234567890123456789",
      ],
    ] as const) {
      expect({ price, places, moved: shiftPoint(price, places) }).toEqual({ price, places, moved });
    }
    // Against a library of somebody else, for any number of digits.
    for (let places = 0; places <= 30; places++) {
      const moved = shiftPoint("987654321.000123456789", places - 12);
      expect(parseUnits(moved, 24)).toBe(987_654_321_000_123_456_789n * 10n ** BigInt(places));
    }
  });

  it("is shown with the digits that people read", () => {
    expect(shownPrice("0.000000000000000000123456789012345")).toBe(
      "0.000000000000000000123456789012",
    );
    expect(shownPrice("12345.678901234567")).toBe("12345.6789012");
    expect(shownPrice("123456789012345678.9")).toBe("123456789012345678");
    expect(shownPrice("0")).toBe("0");
  });

  it("is digits and a point, and nothing else is one", () => {
    for (const text of ["0", "1", "0.5", "10.25"]) expect(isPrice(text)).toBe(true);
    for (const text of ["", "01", ".5", "1.", "-1", "1e5", "NaN", 1, null, "9".repeat(401)]) {
      expect(isPrice(text)).toBe(false);
    }
  });
});
