import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

/** A real HDFS on this machine, until standard input ends: `java -cp JARS MiniHdfs.java FOLDER`. */
public class MiniHdfs {
    public static void main(String[] args) throws Exception {
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(new Configuration(), new File(args[0])).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("listens on " + cluster.getURI() + " and webhdfs://" + cluster.getNameNode().getHttpAddress().getHostString()
            + ":" + cluster.getNameNode().getHttpAddress().getPort());
        System.out.flush();
        while (System.in.read() >= 0) { }
        cluster.shutdown(true);
    }
}
