import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.Version;
import org.opensearch.common.settings.Settings;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.Plugin;
import org.opensearch.plugins.PluginInfo;

/**
 * One OpenSearch node with plugins from the class path: `Reference.java HOME PORT PLUGIN,PLUGIN... [NAME TRANSPORT_PORT
 * SEED,SEED...]`. With a name it is one node of a cluster, whose nodes are named after their transport addresses.
 */
public class Reference {
  static class Embedded extends Node {
    /** @param plugins classes for release 2, PluginInfo for release 3 */
    @SuppressWarnings({"rawtypes", "unchecked"})
    Embedded(Settings settings, Collection plugins) {
      super(
          InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "reference"),
          plugins,
          false);
    }
  }

  public static void main(String[] args) throws Exception {
    List<Object> plugins = new ArrayList<>();
    for (String name : args[2].split(",")) {
      plugins.add(
          Version.CURRENT.major < 3
              ? Class.forName(name).asSubclass(Plugin.class)
              : new PluginInfo(name, "", "", Version.CURRENT, "21", name, null, List.of(), false));
    }
    Settings.Builder settings =
        Settings.builder()
            .put("path.home", args[0])
            .put("cluster.name", "reference")
            .put("network.host", "127.0.0.1")
            .put("http.port", args[1])
            .put("transport.type", "netty4")
            .put("http.type", "netty4")
            .put("cluster.routing.allocation.disk.threshold_enabled", false);
    if (args.length > 3) {
      List<String> seeds = List.of(args[5].split(","));
      settings
          .put("node.name", args[3])
          .put("transport.port", args[4])
          .put("node.processors", 2)
          .putList("discovery.seed_hosts", seeds)
          .putList("cluster.initial_cluster_manager_nodes", seeds);
    } else {
      settings
          .put("node.name", "reference")
          .put("transport.port", "0")
          .put("discovery.type", "single-node");
    }
    new Embedded(settings.build(), plugins).start();
    new CountDownLatch(1).await();
  }
}
