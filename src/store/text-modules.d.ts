/** Files that the bundler embeds as text. */
declare module "*.sql" {
  const text: string;
  // oxlint-disable-next-line import/no-default-export -- an imported text has no other name
  export default text;
}
