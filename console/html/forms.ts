/** Forms: every field with its label, every action with its reason. */
import { randomUUID } from "node:crypto";
import { MAX_REASON_CHARACTERS } from "../../chain/evm/foreign-text.js";
import { type Content, el } from "../../web/html/element.js";

/** One field of a form. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** "text" where nothing is said. */
  readonly kind?: "text" | "password" | "number" | "textarea";
  readonly value?: string | undefined;
  readonly isRequired?: boolean;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly autocomplete?: string;
}

/** A field with its label; `form` tells apart the fields of several forms of a page. */
export function field(form: string, given: Field): Content {
  const { name, label, kind = "text", value, isRequired, maxLength, pattern } = given;
  const id = `${form}-${name}`;
  const common = {
    id,
    name,
    required: isRequired === true,
    maxlength: maxLength,
    autocomplete: given.autocomplete ?? "off",
  };
  return [
    el("label", { for: id }, label),
    kind === "textarea"
      ? el("textarea", { ...common, rows: 3 }, value)
      : el("input", {
          ...common,
          type: kind === "number" ? "text" : kind,
          inputmode: kind === "number" ? "numeric" : undefined,
          spellcheck: "false",
          pattern,
          value,
        }),
  ];
}

/** A choice of one of several values. */
export function choice(
  form: string,
  given: {
    readonly name: string;
    readonly label: string;
    readonly value: string | undefined;
    readonly options: readonly (readonly [value: string, text: string])[];
  },
): Content {
  const id = `${form}-${given.name}`;
  return [
    el("label", { for: id }, given.label),
    el(
      "select",
      { id, name: given.name },
      given.options.map(([value, text]) =>
        el("option", { value, selected: value === given.value }, text),
      ),
    ),
  ];
}

/** The reason that every action asks for. */
export function reasonField(form: string, label: string): Content {
  return field(form, {
    name: "reason",
    label,
    kind: "textarea",
    isRequired: true,
    maxLength: MAX_REASON_CHARACTERS.api,
  });
}

/** A form that does something. */
export function actionForm(
  given: {
    readonly action: string;
    readonly hidden: Content;
    readonly submit: Content;
  },
  ...fields: Content[]
): Content {
  return el(
    "form",
    { class: "stacked", action: given.action, method: "post" },
    given.hidden,
    ...fields,
    given.submit,
  );
}

/** What every form carries: the session's token, and a key that no other form has. */
export function hiddenFields({ formToken }: { readonly formToken: string }): Content {
  return [
    el("input", { type: "hidden", name: "token", value: formToken }),
    el("input", { type: "hidden", name: "formKey", value: randomUUID() }),
  ];
}

/** A button that sends its form. */
export function submit(
  text: string,
  options: { readonly isDanger?: boolean; readonly name?: string; readonly value?: string } = {},
): Content {
  const { isDanger, name, value } = options;
  return el(
    "button",
    { type: "submit", class: isDanger === true ? "danger" : undefined, name, value },
    text,
  );
}

/** A form that only chooses what is shown. */
export function filterForm(action: string, button: string, ...fields: Content[]): Content {
  return el("form", { action, method: "get" }, ...fields, submit(button));
}
