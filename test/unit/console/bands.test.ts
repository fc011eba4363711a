/** Bands on the page of the treasury: what is shown beside them is not what the treasury counts. */
import { expect, it } from "@jest/globals";
import { coinRoutes } from "../../../console/pages/coins.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { CATALOGUES } from "../../../console/text/catalogue.js";
import { shownPage } from "../../helpers/pages/console-page.js";
import { all, textOf } from "../../helpers/pages/html.js";

const { en } = CATALOGUES;

const REFILL = { amountUnits: "700", cameUnits: "0", wallet: null, wallets: ["0x70"] };

/** The badges of the page, where the wallets together hold so much by the books. */
async function badges(hotUnits: string, refill: typeof REFILL | null): Promise<readonly string[]> {
  const asset = {
    asset: "TOKEN",
    hotUnits,
    depositAddressesUnits: "0",
    inTransitUnits: "0",
    coldUnits: "0",
    openSweeps: 0,
    frozenSweeps: 0,
    refill,
  };
  const band = { lowUnits: "600", targetUnits: "1000", highUnits: "1500" };
  const terms = { treasury: { assets: { TOKEN: { coldAddress: null, band } } } };
  const answers: Readonly<Record<string, unknown>> = {
    "/v1/treasury": { assets: [asset] },
    "/v1/policy": { hash: "ab", chainId: "6940", terms },
    "/v1/sweeps": { sweeps: [], next: null },
    "/v1/assets": { assets: [] },
  };
  const answer = ({ path }: ApiQuestion<unknown>) => answers[path];
  const { root } = await shownPage(coinRoutes(), "/treasury", { role: "viewer", answer });
  return all(root, "span").map(textOf);
}

it("say that a refill is asked for, and nothing of coins that may not count", async () => {
  // Of 1,200 a draining wallet has 900: the treasury counts 300.
  expect(await badges("1200", REFILL)).toEqual([en.refillWaits]);
  for (const hotUnits of ["300", "1200", "2000"]) expect(await badges(hotUnits, null)).toEqual([]);
});
