/** Lights of the console's first page that are one look away: what the treasury and webhooks wait for. */
import { expect, it } from "@jest/globals";
import type { PageContext } from "../../../console/pages/context.js";
import { overviewRoutes } from "../../../console/pages/overview.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { PageError } from "../../../web/errors.js";
import { shownPage } from "../../helpers/pages/console-page.js";
import { all, textOf } from "../../helpers/pages/html.js";

/** The words of a light, where one route alone answers. */
async function lightOf(name: string, route: string, body: object): Promise<string | undefined> {
  const context = {
    parts: [],
    evm: { getBlockHeader: async () => undefined },
    clock: systemClock,
  } as unknown as PageContext;
  const answer = ({ path }: ApiQuestion<unknown>) => {
    if (path !== route) throw new PageError("UNAVAILABLE", "no answer");
    return body;
  };
  const { root } = await shownPage(overviewRoutes(context), "/", { role: "viewer", answer });
  return all(root, "li")
    .map((light) => textOf(light))
    .find((text) => text.startsWith(name));
}

it("of the treasury warns of a refill that is asked for, and is red for frozen sweeps", async () => {
  const asset = {
    asset: "TOKEN",
    hotUnits: "1",
    depositAddressesUnits: "0",
    inTransitUnits: "0",
    coldUnits: "0",
    openSweeps: 0,
    frozenSweeps: 0,
    refill: null,
  };
  const shown = (...assets: object[]) => lightOf("Treasury", "/v1/treasury", { assets });
  expect(await shown(asset)).toMatch(/^Treasury well$/);
  const refill = { ...asset, refill: { amountUnits: "5", cameUnits: "0" } };
  expect(await shown(asset, refill)).toMatch(/^Treasury look at it ?A refill is asked for: TOKEN$/);
  const frozen = { ...asset, asset: "GOLD", frozenSweeps: 2 };
  expect(await shown(refill, frozen)).toMatch(/^Treasury failed ?Frozen sweeps of GOLD: 2/);
});

it("of webhooks is red for one that was switched off", async () => {
  const webhook = {
    id: "wh_1",
    url: "https://exchange.example/hook",
    events: [],
    description: null,
    status: "active",
    reason: null,
    createdAt: "2026-01-01T00:00:00Z",
    cursorSeq: 1,
    behindEvents: 0,
    pending: 0,
    dead: 0,
  };
  const shown = (...webhooks: object[]) => lightOf("Webhooks", "/v1/webhooks", { webhooks });
  expect(await shown()).toMatch(/^Webhooks well ?0$/);
  expect(await shown(webhook)).toMatch(/^Webhooks well ?1$/);
  const off = { ...webhook, id: "wh_2", status: "disabled" };
  expect(await shown(webhook, off)).toMatch(/^Webhooks failed ?disabled: wh_2$/);
});
