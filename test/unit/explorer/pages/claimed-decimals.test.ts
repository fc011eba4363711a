/** Amounts of tokens whose contracts tell no decimals, or any: nobody takes smallest units for whole tokens. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { tokenRoutes } from "../../../../explorer/pages/tokens.js";
import { all, textOf } from "../../../helpers/pages/html.js";
import { openPage, shownContent } from "../../../helpers/pages/explorer-page.js";

const TOKEN = parseAddress(`0x${"70".repeat(20)}`);
const HOLDER = parseAddress(`0x${"a1".repeat(20)}`);

async function shownOf(decimals: number | undefined): Promise<string[]> {
  const nothing = { next: undefined, indexedHeight: undefined, indexedHash: undefined };
  const claims = { name: "A", symbol: "A", decimals, totalSupplyUnits: 5_000n };
  const context = {
    tokens: new Map(),
    chain: {
      evm: { getCode: () => Promise.resolve("0x60") },
      tokenClaims: () => Promise.resolve(claims),
    },
    indexer: {
      holders: () =>
        Promise.resolve({
          ...nothing,
          items: [{ account: HOLDER, units: 1_500n, tokenId: undefined }],
        }),
      tokenTransfers: () => Promise.resolve({ ...nothing, items: [] }),
    },
  } as unknown as PageContext;
  const route = tokenRoutes(context).find(({ path }) => path === "/token");
  const page = await openPage(route, { parameter: TOKEN });
  const { root } = shownContent(page.content);
  const supply = all(root, "dd").map(textOf).at(-1) ?? "";
  return [supply, ...all(root, "td").map(textOf).slice(-1)];
}

it("are in units, and say so", async () => {
  expect(await shownOf(undefined)).toEqual(["5000 units", "1500 units"]);
  expect(await shownOf(255)).toEqual(["5000 units", "1500 units"]);
});

it("are in whole tokens where there are any", async () => {
  expect(await shownOf(3)).toEqual(["5", "1.5"]);
  expect(await shownOf(0)).toEqual(["5000", "1500"]);
});
