/** Settings of app.toml about upgrades that governance plans. */
import { field } from "../../runtime/config/config.js";

/** Keys above the first table of app.toml. */
export const UPGRADE_SETTINGS = {
  "skip-upgrades": field.list({
    default: [],
    pattern: /^[1-9][0-9]{0,14}$/,
    allowed: "a list of heights, each a text of digits",
    help:
      "Heights at which a planned upgrade is given up in place of carried out. Only where the " +
      "validators have agreed on it: a node that does so alone leaves the chain. A height stays here " +
      "for good, on every node, new ones too: nothing in the chain says that it was given up.",
  }),
} as const;
