/** What persons said about a withdrawal: once each, and whether it counts by the policy of now. */
import { expect, it } from "@jest/globals";
import { approvalRoutes } from "../../../console/pages/approvals.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { CATALOGUES } from "../../../console/text/catalogue.js";
import { shownPage, withdrawalAnswerOf } from "../../helpers/pages/console-page.js";
import { all, textOf } from "../../helpers/pages/html.js";

const { en } = CATALOGUES;
const [FORMER, NOW] = ["aa".repeat(32), "bb".repeat(32)];

const said = (keyId: string, policyHash: string, minute: number, more: object = {}) => ({
  keyId,
  decision: "approve",
  reason: "known payee",
  policyHash,
  signed: false,
  counts: policyHash === NOW,
  at: `2026-01-01T00:0${minute}:00.000Z`,
  ...more,
});

/** Rows of the table of given approvals. */
async function rowsOf(approvals: readonly object[], isSigned = false) {
  const withdrawal = withdrawalAnswerOf({ approvalsNeeded: 2, approvalsGiven: 1, approvals });
  const terms = {
    status: "pending_approval",
    needed: 2,
    given: 1,
    signed: isSigned,
    policyHash: NOW,
    approvers: [],
    messages: [],
  };
  const answer = ({ path }: ApiQuestion<unknown>) => {
    if (path === "/v1/assets") return { assets: [] };
    return path.endsWith("/approvals") ? terms : withdrawal;
  };
  const shown = { role: "viewer", params: { id: "wd_1" }, answer } as const;
  const { root } = await shownPage(approvalRoutes(), "/approvals/{id}", shown);
  const rows = all(root, "tr").slice(1);
  return rows.map((row) => [...all(row, "th"), ...all(row, "td")].map(textOf));
}

it("are one row for each person, though the policy was changed twice since", async () => {
  const other = "cc".repeat(32);
  const kept = [said("ann", FORMER, 1), said("ann", other, 2), said("ann", NOW, 3)];
  expect(await rowsOf(kept)).toEqual([
    ["ann", "approve", "known payee", "no", "yes", "2026-01-01 00:01:00 UTC"],
  ]);
});

it("are marked where they count no more, as under a former policy or without a signature", async () => {
  expect(
    await rowsOf(
      [
        said("ann", FORMER, 1),
        said("bob", FORMER, 2, { signed: true }),
        said("bob", NOW, 3, { signed: true, reason: "once more" }),
        said("eve", NOW, 4, { counts: false }),
        said("dan", NOW, 5, { decision: "reject", counts: false }),
      ],
      true,
    ),
  ).toEqual([
    ["ann", "approve", "known payee", "no", en.countsFormer, "2026-01-01 00:01:00 UTC"],
    ["bob", "approve", "once more", "yes", "yes", "2026-01-01 00:03:00 UTC"],
    ["eve", "approve", "known payee", "no", en.countsUnsigned, "2026-01-01 00:04:00 UTC"],
    ["dan", "reject", "known payee", "no", "—", "2026-01-01 00:05:00 UTC"],
  ]);
});

it("are said nothing of by an API of before, which does not tell what counts", async () => {
  const before = said("ann", NOW, 1, { counts: undefined });
  expect((await rowsOf([before]))[0]?.[4]).toBe("—");
});
