import { For, type JSX } from "solid-js";

/** A grey bar in place of a value that loads. */
export const Skeleton = (): JSX.Element => <span class="skeleton" aria-hidden="true" />;

/** Rows that reserve a table's space while it loads. */
export function SkeletonRows(props: { columns: number; rows?: number }): JSX.Element {
  return (
    <>
      {Array.from({ length: props.rows ?? 6 }, () => (
        <tr aria-hidden="true">
          {Array.from({ length: props.columns }, () => (
            <td>
              <Skeleton />
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}

/** Rows that reserve a list's space while it loads. */
export const SkeletonList = (): JSX.Element => (
  <ul class="list" aria-hidden="true">
    <For each={[1, 2, 3]}>
      {() => (
        <li>
          <Skeleton />
        </li>
      )}
    </For>
  </ul>
);
