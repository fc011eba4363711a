/** A webhook's page: what its receiver said is there to be read, without a pointer to hold over it. */
import { expect, it } from "@jest/globals";
import { webhookRoutes } from "../../../console/pages/webhooks.js";
import { shownPage } from "../../helpers/pages/console-page.js";

const ID = "wh_1";
const ERROR = "the receiver's certificate expired on 2026-11-01: nothing was sent to it";

const WEBHOOK = {
  id: ID,
  url: "https://exchange.example/hook",
  events: ["deposit.credited"],
  description: null,
  status: "active",
  reason: null,
  createdAt: "2026-01-01T00:00:00Z",
  cursorSeq: 1,
  behindEvents: 0,
  pending: 1,
  dead: 0,
};

const DELIVERY = {
  seq: 1,
  type: "deposit.credited",
  status: "pending",
  attempts: 3,
  nextTryAt: null,
  lastStatus: null,
  lastError: ERROR,
  changedAt: "2026-01-01T00:00:00Z",
};

it("says why a delivery failed, in full", async () => {
  const { text } = await shownPage(webhookRoutes(), "/webhooks/{id}", {
    role: "viewer",
    params: { id: ID },
    answer: ({ path }) =>
      path.endsWith("/deliveries") ? { deliveries: [DELIVERY], next: null } : WEBHOOK,
  });
  expect(text).toContain(ERROR);
});
