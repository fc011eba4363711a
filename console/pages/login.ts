/** The pages of the login and of one's own password. */
import { type Content, el } from "../../web/html/element.js";
import { section } from "../../web/html/parts.js";
import { CONSOLE_STATUS } from "../errors.js";
import { actionForm, field, submit } from "../html/forms.js";
import type { ConsolePage } from "../server/route.js";
import type { Texts } from "../text/catalogue.js";
import { MAX_PASSWORD } from "../users/sealed-key.js";

/** What went wrong before. */
export type LoginNote = "loginEnded" | "loginWrong" | "formRefusedText" | undefined;

/** The form of the login. */
export function loginPage(
  t: Texts,
  given: { readonly hidden: Content; readonly note: LoginNote; readonly status: number },
): ConsolePage {
  const { hidden, note, status } = given;
  return {
    status,
    title: t("login"),
    content: [
      note === undefined ? undefined : el("p", { class: "note warning", role: "alert" }, t(note)),
      actionForm(
        { action: "/login", hidden, submit: submit(t("login")) },
        field("login", {
          name: "user",
          label: t("name"),
          isRequired: true,
          maxLength: 32,
          autocomplete: "username",
        }),
        field("login", {
          name: "password",
          label: t("password"),
          kind: "password",
          isRequired: true,
          maxLength: MAX_PASSWORD,
          autocomplete: "current-password",
        }),
      ),
    ],
  };
}

/** One's own account: the password is changed here. */
export function accountPage(
  t: Texts,
  given: {
    readonly hidden: Content;
    readonly user: string;
    readonly role: string;
    readonly mustChange: boolean;
    readonly done: Content;
    /** Why the password was not changed. */
    readonly fault: "passwordUnfit" | undefined;
  },
): ConsolePage {
  const password = (name: string, label: string, autocomplete: string) =>
    field("account", {
      name,
      label,
      kind: "password",
      isRequired: true,
      maxLength: MAX_PASSWORD,
      autocomplete,
    });
  const { fault } = given;
  return {
    status: fault === undefined ? 200 : CONSOLE_STATUS.PASSWORD_UNFIT,
    title: t("account"),
    content: [
      given.done,
      fault === undefined ? undefined : el("p", { class: "note warning", role: "alert" }, t(fault)),
      given.mustChange ? el("p", { class: "note warning" }, t("mustChangeText")) : undefined,
      el("p", {}, `${given.user}, ${t("role")}: ${given.role}`),
      section(
        t("changePassword"),
        actionForm(
          {
            action: "/account/password",
            hidden: given.hidden,
            submit: submit(t("changePassword")),
          },
          password("current", t("currentPassword"), "current-password"),
          password("new", `${t("newPassword")} (${t("newPasswordHint")})`, "new-password"),
          password("again", t("repeatPassword"), "new-password"),
        ),
      ),
    ],
  };
}
