/* User objects: what a graph keeps alive. The last reference's end calls the destructor on the
 * driver's thread, as graphs may end anywhere. */
#include "tests/fakecuda/driver/fake.h"

struct fake_user {
    CUuserObject handle;
    void *data;
    CUhostFn destroy;
    unsigned references;
};
static struct fake_handles users;

static void drop(struct fake_user *user, unsigned count)
{
    user->references -= count < user->references ? count : user->references;
    if (user->references) return;
    fake_host_call(user->destroy, user->data);
    fake_handle_free(&users, user->handle);
    free(user);
}

static void add(struct fake_graph *graph, struct fake_user *user)
{
    graph->users = realloc(graph->users, (graph->user_count + 1) * sizeof *graph->users);
    if (!graph->users) abort();
    graph->users[graph->user_count++] = user;
}

void fake_users_copy(struct fake_graph *to, const struct fake_graph *from)
{
    for (size_t i = 0; i < from->user_count; i++) {
        from->users[i]->references++;
        add(to, from->users[i]);
    }
}

void fake_users_drop(struct fake_graph *graph)
{
    for (size_t i = 0; i < graph->user_count; i++) drop(graph->users[i], 1);
    free(graph->users);
    graph->users = NULL;
    graph->user_count = 0;
}

API(cuUserObjectCreate,
    (CUuserObject * out, void *data, CUhostFn destroy, unsigned references, unsigned flags),
    (out, data, destroy, references, flags))
{
    struct fake_user *user;

    if (!out || !destroy || !references || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    FAKE_LOCKED;
    user = calloc(1, sizeof *user);
    if (!user) return CUDA_ERROR_OUT_OF_MEMORY;
    user->data = data;
    user->destroy = destroy;
    user->references = references;
    *out = user->handle = fake_handle_new(&users, user);
    return CUDA_SUCCESS;
}

API(cuUserObjectRetain, (CUuserObject handle, unsigned count), (handle, count))
{
    FAKE_LOCKED;
    struct fake_user *user = fake_handle_get(&users, handle);
    if (!user || !count) return CUDA_ERROR_INVALID_VALUE;
    user->references += count;
    return CUDA_SUCCESS;
}

API(cuUserObjectRelease, (CUuserObject handle, unsigned count), (handle, count))
{
    FAKE_LOCKED;
    struct fake_user *user = fake_handle_get(&users, handle);
    if (!user || !count || count > user->references) return CUDA_ERROR_INVALID_VALUE;
    drop(user, count);
    return CUDA_SUCCESS;
}

API(cuGraphRetainUserObject, (CUgraph hgraph, CUuserObject handle, unsigned count, unsigned flags),
    (hgraph, handle, count, flags))
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(hgraph);
    struct fake_user *user = fake_handle_get(&users, handle);
    if (!graph || !user || !count || (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
        user->references += count; /* else the caller's own go over */
    for (unsigned i = 0; i < count; i++) add(graph, user);
    return CUDA_SUCCESS;
}

API(cuGraphReleaseUserObject, (CUgraph hgraph, CUuserObject handle, unsigned count),
    (hgraph, handle, count))
{
    FAKE_LOCKED;
    struct fake_graph *graph = fake_graph_get(hgraph);
    struct fake_user *user = fake_handle_get(&users, handle);
    unsigned released = 0;

    if (!graph || !user || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->user_count && released < count;) {
        if (graph->users[i] != user) {
            i++;
            continue;
        }
        graph->users[i] = graph->users[--graph->user_count];
        released++;
    }
    if (released) drop(user, released);
    return released == count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
