import { expect, it } from "@jest/globals";
import { tmpdir } from "node:os";
import { runCommand } from "../../../helpers/processes/command-line.js";

it.each(["0", "1.5", "1000001", "99999999999"])(
  "a key for %s calls a second is refused before anything is asked",
  async (rate) => {
    const words = ["keys", "create", "--scope", "deposits:read", "--rate", rate];
    const refused = await runCommand(tmpdir(), words);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toContain("--rate");
  },
);
