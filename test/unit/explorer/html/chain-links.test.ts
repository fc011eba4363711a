/** What accounts of the chain are called: as its genesis has it, and not as those of other chains are. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../../chain/chain-accounts.js";
import { addressLink } from "../../../../explorer/html/chain-links.js";
import { textsOf } from "../../../../explorer/text/catalogue.js";
import { shownContent } from "../../../helpers/pages/explorer-page.js";

const OWN = parseAddress(`0x${"7e".repeat(20)}`);
const accounts = { ...USUAL_ACCOUNTS, treasury: OWN };

it("names the chain's own accounts, in the reader's language, and nobody at the usual addresses", () => {
  const shown = (language: "en" | "de", address = OWN) =>
    shownContent(addressLink(address, textsOf(language, accounts))).text;
  expect(shown("en")).toContain("treasury");
  expect(shown("de")).toContain("Schatz");
  expect(shown("en", USUAL_ACCOUNTS.treasury)).not.toContain("treasury");
  expect(shown("en", USUAL_ACCOUNTS.feeCollector)).toContain("fee collector");
});

it("names nobody before the node has told the chain's accounts", () => {
  for (const address of [OWN, USUAL_ACCOUNTS.treasury]) {
    expect(shownContent(addressLink(address, textsOf("en"))).text).not.toContain("treasury");
  }
});
